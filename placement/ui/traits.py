"""How pages show many traits: grouped by topic."""

from collections.abc import Sequence

MAX_UNGROUPED = 8
"""Up to this many are shown without groups."""

TWO_WORDS = frozenset({"HW", "MISC"})
"""For these prefixes the second word belongs to the topic: HW_CPU, HW_GPU, HW_NUMA."""


def grouped(traits: Sequence[str]) -> dict[str, list[str]]:
    """Return traits grouped by the beginning of their names; a few of them form one unnamed group."""
    if len(traits) <= MAX_UNGROUPED:
        return {"": list(traits)} if traits else {}
    groups: dict[str, list[str]] = {}
    for name in traits:
        words = name.split("_")
        groups.setdefault("_".join(words[: 2 if words[0] in TWO_WORDS else 1]), []).append(name)
    return groups

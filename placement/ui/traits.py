"""How pages show many traits: in groups, by what they are about."""

from collections.abc import Sequence

FEW = 8
"""So many are shown without groups."""

TWO_WORDS = frozenset({"HW", "MISC"})
"""What these are about their second word tells: HW_CPU, HW_GPU, HW_NUMA."""


def grouped(traits: Sequence[str]) -> dict[str, list[str]]:
    """Return traits by how their names begin; few of them as one group, called by nothing."""
    if len(traits) <= FEW:
        return {"": list(traits)} if traits else {}
    groups: dict[str, list[str]] = {}
    for name in traits:
        words = name.split("_")
        groups.setdefault("_".join(words[: 2 if words[0] in TWO_WORDS else 1]), []).append(name)
    return groups

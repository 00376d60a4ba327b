"""Which root each provider of a forest has, worked out from the parents alone."""

from collections.abc import Mapping


def true_roots(parents: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the root of each provider, or None where the way up ends at a missing provider or never. O(providers)."""
    roots: dict[int, int | None] = {}
    for start in parents:
        path: list[int] = []
        on_path: set[int] = set()
        here: int | None = start
        while here is not None and here in parents and here not in roots and here not in on_path:
            path.append(here)
            on_path.add(here)
            here = parents[here]
        if here is None:
            root: int | None = path[-1] if path else None
        elif here in on_path:
            root = None
        else:
            root = roots.get(here)
        roots.update(dict.fromkeys(path, root))
    return roots

"""Going up in provider trees: from a provider to its parent, and so on to the root."""

from collections.abc import Iterator, Mapping

Parents = Mapping[int, int | None]
"""The parent of each provider, None for roots."""


def upwards(provider: int, parents: Parents) -> Iterator[int]:
    """Yield a provider and all its ancestors, the root last.

    The rows of a loop, which only a DBA can make, end it; so does a provider whose parent is not known.

    >>> [*upwards(3, {1: None, 2: 1, 3: 2})]
    [3, 2, 1]
    """
    seen = set[int]()
    here: int | None = provider
    while here is not None and here not in seen:
        seen.add(here)
        yield here
        here = parents.get(here)


def true_roots(parents: Parents) -> dict[int, int | None]:
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

"""Walking up provider trees, from a provider to its parent and on to the root."""

from collections.abc import Iterable, Iterator, Mapping

Parents = Mapping[int, int | None]
"""Provider -> its parent, None for roots."""


def upwards(provider: int, parents: Parents) -> Iterator[int]:
    """Yield a provider and all its ancestors, the root last.

    Stops at a cycle, which only a DBA can create, and at a provider whose parent is not known.
    >>> [*upwards(3, {1: None, 2: 1, 3: 2})]
    [3, 2, 1]
    """
    seen = set[int]()
    here: int | None = provider
    while here is not None and here not in seen:
        seen.add(here)
        yield here
        here = parents.get(here)


def with_all_above(providers: Iterable[int], parents: Parents) -> set[int]:
    """Return some providers with all their ancestors. O(size of the result).

    >>> sorted(with_all_above([3, 4], {1: None, 2: 1, 3: 2, 4: 2, 5: 1}))
    [1, 2, 3, 4]
    """
    found = set[int]()
    for provider in providers:
        # The ancestors of a provider already found have been found as well.
        here: int | None = provider
        while here is not None and here not in found:
            found.add(here)
            here = parents.get(here)
    return found


def without_cycles(parents: Parents) -> dict[int, int | None]:
    """Return the parents, with providers of a cycle, and all below one, as roots: an odd database may have some.

    >>> without_cycles({1: None, 2: 1, 3: 4, 4: 3, 5: 3})
    {1: None, 2: 1, 3: None, 4: None, 5: None}
    """
    roots = true_roots(parents)
    return {provider: None if roots[provider] is None else parent for provider, parent in parents.items()}


def true_roots(parents: Parents) -> dict[int, int | None]:
    """Return the root of each provider, or None if its ancestry ends at an unknown one or in a cycle. O(providers)."""
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

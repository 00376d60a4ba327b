"""How providers are nested, and the places of each level, such as NUMA nodes or PCIe switches, that they lie in.

A set of places is an integer, a *place mask*, so what a candidate touches is an OR over its providers. Bits are unique
within a tree and reused in the next one. Where the provider that a place is named after matters, its *anchor*, there
are positions instead of masks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple


class PlaceLock(NamedTuple):
    """The lock of a level: whoever has taken all of it at a place holds that exclusively, with everything below.

    Args:
        resource_class: the class that places of the level have inventory of.
        trait: the trait that makes a provider a place of the level; None if every provider is one.
    """

    resource_class: str
    trait: str | None


Parents = Mapping[int, int | None]
"""Provider -> its parent, None for roots."""


def upwards(provider: int, parents: Parents) -> Iterator[int]:
    """Yield a provider and all its ancestors, the root last.

    Stops at a cycle, which only a DBA can create, and at a provider whose parent is not known.
    """
    visited = set[int]()
    ancestor: int | None = provider
    while ancestor is not None and ancestor not in visited:
        visited.add(ancestor)
        yield ancestor
        ancestor = parents.get(ancestor)


def with_all_above(providers: Iterable[int], parents: Parents) -> set[int]:
    """Return some providers with all their ancestors. O(size of the result)."""
    ancestry = set[int]()
    for provider in providers:
        # The ancestors of a provider already found have been found as well.
        ancestor: int | None = provider
        while ancestor is not None and ancestor not in ancestry:
            ancestry.add(ancestor)
            ancestor = parents.get(ancestor)
    return ancestry


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
        ancestor: int | None = start
        while ancestor is not None and ancestor in parents and ancestor not in roots and ancestor not in on_path:
            path.append(ancestor)
            on_path.add(ancestor)
            ancestor = parents[ancestor]
        if ancestor is None:
            root: int | None = path[-1] if path else None
        elif ancestor in on_path:
            root = None
        else:
            root = roots.get(ancestor)
        roots.update(dict.fromkeys(path, root))
    return roots


Position = tuple[int | None, ...]
"""For each level, outermost first, the anchor of a provider's place; None if it lies in none."""


class Places(NamedTuple):
    """Where the providers of one tree lie.

    ``masks`` maps providers to their places of all levels; it may omit those that lie in none, and contain others.
    ``levels`` has all places of each level, outermost first.
    """

    masks: Mapping[int, int]
    levels: tuple[int, ...]

    def around(self, providers: Iterable[int]) -> int:
        """Return the places that any of these providers lies in."""
        return reduce(or_, [self.masks.get(provider, 0) for provider in providers], 0)

    def touched(self, touched: int) -> tuple[int, ...]:
        """Count a set of places by level."""
        return tuple([(touched & places).bit_count() for places in self.levels])

    def counts(self, touched: int) -> tuple[int, ...]:
        """Count the same way, but at least 1 for each level: what compactness is computed from.

        What touches no place of a level counts as compact as what touches one, so that hosts that do not model their
        NUMA nodes are not penalised.
        """
        return tuple([max(1, (touched & places).bit_count()) for places in self.levels])


NOWHERE = Places({}, ())


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a request, outermost first: those of the planner file, then traits that the request names itself.

    ``traits`` has the trait of each; ``names`` what a request calls it.
    """

    names: tuple[str, ...]
    traits: tuple[str, ...]

    def named(self, level: str) -> str:
        """Return the name of a level that may be written as its trait."""
        return self.names[self.traits.index(level)] if level in self.traits else level

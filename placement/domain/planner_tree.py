"""One provider tree as the planner sees it: who can serve what, where in the machine that is, and what is in use."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from placement.domain.amounts import summed
from placement.domain.inventory import UNBOUNDED

Position = tuple[int | None, ...]
"""For each level, outermost first, the provider that stands for the place; None where there is none."""


@dataclass(frozen=True, slots=True)
class Stock:
    """What a provider has of a resource class, how much of that is in use, and in which units it comes.

    The units are those of the inventory where they have been read, or else do not restrict anything.
    """

    capacity: int
    used: int
    min_unit: int = 1
    max_unit: int = UNBOUNDED
    step_size: int = 1


@dataclass(slots=True)
class PlannerTree:
    """The providers of one tree, and of those that share with it, in detail.

    Args:
        root: the id of the root provider.
        parents: the parent of each provider.
        names: the name of each provider.
        traits: the traits of each provider that has any.
        stocks: the inventories of each provider that has any, by class.
        positions: the place of each provider at each level.
        guests: the providers of other trees.
    """

    root: int
    parents: Mapping[int, int | None]
    names: Mapping[int, str]
    traits: Mapping[int, frozenset[str]] = field(default_factory=dict)
    stocks: Mapping[int, Mapping[str, Stock]] = field(default_factory=dict)
    positions: Mapping[int, Position] = field(default_factory=dict)
    guests: Collection[int] = frozenset()

    def own(self, providers: Iterable[int]) -> list[int]:
        """Return those providers that are of the tree itself."""
        return [provider for provider in providers if provider not in self.guests]

    def totals(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return what the tree itself has of each class, and what of that is in use."""
        own = [stock for provider in self.own(self.stocks) for stock in self.stocks[provider].items()]
        return summed([{name: stock.capacity} for name, stock in own]), summed([{name: s.used} for name, s in own])

    def in_use(self) -> set[int]:
        """Return the providers of which, or below which, anything is allocated."""
        found: set[int] = set()
        for provider, of_provider in self.stocks.items():
            if any([stock.used for stock in of_provider.values()]):
                found.update(ancestry(provider, self.parents))
        return found


def ancestry(provider: int, parents: Mapping[int, int | None]) -> list[int]:
    """Return a provider and all its ancestors, the root last.

    >>> ancestry(3, {1: None, 2: 1, 3: 2})
    [3, 2, 1]
    """
    found = []
    above: int | None = provider
    while above is not None:
        found.append(above)
        above = parents.get(above)
    return found


def positions_of(
    providers: Collection[int], parents: Mapping[int, int | None], marks: Mapping[int, Collection[int]], levels: int
) -> dict[int, Position]:
    """Return for each provider the nearest place of each level, going up from the provider itself.

    Args:
        providers: those that are asked about.
        parents: the parent of each provider of their trees.
        marks: the providers that are places, with the numbers of their levels.
        levels: how many levels there are.

    >>> positions_of([3], {1: None, 2: 1, 3: 2}, {2: [0]}, levels=2)
    {3: (2, None)}
    """
    known: dict[int | None, Position] = {None: (None,) * levels}
    for provider in providers:
        path = []
        above: int | None = provider
        while above not in known:
            path.append(above)
            above = parents.get(above)  # type: ignore[arg-type]  # None is known
        found = known[above]
        for here in reversed(path):
            for level in marks.get(here, ()):  # type: ignore[arg-type]
                found = (*found[:level], here, *found[level + 1 :])
            known[here] = found
    return {provider: known[provider] for provider in providers}

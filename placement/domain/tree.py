"""Trees as the search sees them: which of their providers can serve what, and how much room they have."""

from collections.abc import Collection, Iterable, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from placement.domain.inventory import UNBOUNDED
from placement.domain.overlay import Overlay
from placement.domain.places import NOWHERE, Places, Position, upwards, with_all_above


@dataclass(slots=True)
class Tree:
    """The matching providers of one tree, and of those that share with it.

    Args:
        root: the id of the root provider, which identifies the tree in the search.
        options: for each demand of the plan, the ids of the providers that can serve it, in the order they are tried:
            ascending, or as ``lay_out`` sorts them.
        room: (provider, contended class) -> how much all slots together may take there.
        met: provider -> a bit mask of the plan's trait sets that it meets.
        parents: the parent of each provider, None for roots; filled only for requests with same_subtree.
        root_of: the root of each provider that shares with other trees, and so may not be of this one.
        sharing: all providers that share with other trees and can serve something of the request.
        places: the places that the providers lie in; none if levels do not matter.
    """

    root: int
    options: list[list[int]]
    room: MutableMapping[tuple[int, str], float] = field(default_factory=dict)
    met: Mapping[int, int] = field(default_factory=dict)
    parents: Mapping[int, int | None] = field(default_factory=dict)
    root_of: Mapping[int, int] = field(default_factory=dict)
    sharing: AbstractSet[int] = frozenset()
    places: Places = NOWHERE

    def lay_out(self, places: Places, around: Mapping[int, float]) -> None:
        """Set the places of the providers, and sort the options by fit.

        The fullest come first, ties by id. All slots then prefer the same NUMA node.

        ``around`` has how much of the whole request fits where an option lies (``Layout.around``).
        """
        self.places = places
        for options in self.options:
            if len(options) > 1:
                options.sort(key=around.__getitem__)

    @property
    def gives_of_its_own(self) -> bool:
        """Whether any provider that can serve something of the request does not share with other trees."""
        return any(not self.sharing >= {*row} for row in self.options)

    def ancestry(self, provider: int) -> frozenset[int]:
        """Return a provider and all its ancestors."""
        return frozenset(upwards(provider, self.parents))


@dataclass(frozen=True, slots=True)
class Stock:
    """A provider's capacity of a resource class, its usage, and the units it comes in.

    The units are the inventory's if they have been read; otherwise they restrict nothing.
    """

    capacity: int
    used: int
    min_unit: int = 1
    max_unit: int = UNBOUNDED
    step_size: int = 1

    @property
    def free(self) -> int:
        """How much is not in use; negative if more is in use than there is."""
        return self.capacity - self.used

    @property
    def least(self) -> int:
        """The smallest amount that can be taken at once."""
        return -(-self.min_unit // self.step_size) * self.step_size

    @property
    def is_whole_allowed(self) -> bool:
        """Whether all of it may be taken at once, while nothing is in use; also if there is nothing at all."""
        return not self.capacity or self._is_unit(self.capacity)

    def taken(self, amount: int) -> "Stock":
        """Return a copy with this much more in use."""
        if not amount:
            return self
        # ``replace`` takes three times as long, and this runs for each stock that a member takes from.
        return Stock(self.capacity, self.used + amount, self.min_unit, self.max_unit, self.step_size)

    def allows(self, amount: int) -> bool:
        """Tell whether this much more may be taken at once."""
        return self._is_unit(amount) and amount <= self.free

    def _is_unit(self, amount: int) -> bool:
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


class ProviderStocks(dict[str, Stock]):
    """A provider's stocks by class. Never modified, so providers with equal stocks may share them.

    The hash is computed once: it is part of what tells hosts apart (``candidates.planner.planner_trees``).
    """

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.items()))

    def __hash__(self) -> int:  # type: ignore[override]  # a dictionary has none
        return self._hash


NO_STOCKS = ProviderStocks()


class NamedMember(NamedTuple):
    """A provider of a tree."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None
    own_name: str | None

    @property
    def name(self) -> str:
        """Its name, or the uuid if it has none."""
        return self.own_name or self.uuid


@dataclass(slots=True)
class PlannerTree:
    """The providers of one tree, and of those that share with it, in detail.

    Args:
        root: the id of the root provider.
        parents: the parent of each provider.
        names: the name of each provider.
        traits: the traits of each provider that has any.
        stocks: the stocks of each provider that has any.
        positions: the anchor of each provider's place at each level.
        places: the same places as masks, for the tree's own providers.
        foreign_providers: the providers that belong to other trees.
        held: places that are held exclusively, regardless of usage.
    """

    root: int
    parents: Mapping[int, int | None]
    names: Mapping[int, str]
    traits: Mapping[int, frozenset[str]] = field(default_factory=dict)
    stocks: Mapping[int, ProviderStocks] = field(default_factory=dict)
    positions: Mapping[int, Position] = field(default_factory=dict)
    places: Places = NOWHERE
    foreign_providers: Collection[int] = frozenset()
    held: Collection[int] = frozenset()

    def own(self, providers: Iterable[int]) -> list[int]:
        """Return those providers that belong to the tree itself."""
        return [provider for provider in providers if provider not in self.foreign_providers]

    def totals(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the capacity and the usage of each class in the tree itself."""
        capacity: dict[str, int] = {}
        used: dict[str, int] = {}
        for provider in self.own(self.stocks):
            for name, stock in self.stocks[provider].items():
                capacity[name] = capacity.get(name, 0) + stock.capacity
                used[name] = used.get(name, 0) + stock.used
        return capacity, used

    def free_amounts(self) -> dict[int, dict[str, int]]:
        """Return what each of the tree's own providers has left of each class."""
        own = self.own(self.stocks)
        return {provider: {name: stock.free for name, stock in self.stocks[provider].items()} for provider in own}

    def under(self, overlay: Overlay) -> "PlannerTree":
        """Return the tree with an overlay applied."""
        changed = overlay.changes.keys() & self.stocks.keys()
        if not changed and not overlay.held:
            return self
        stocks = {
            provider: ProviderStocks(
                (name, stock.taken(overlay.changes[provider].get(name, 0)))
                for name, stock in self.stocks[provider].items()
            )
            for provider in changed
        }
        return replace(self, stocks={**self.stocks, **stocks}, held=overlay.held)

    def in_use(self) -> set[int]:
        """Return the providers on which, or below which, anything is allocated."""
        used = [provider for provider, stocks in self.stocks.items() if any(stock.used for stock in stocks.values())]
        return with_all_above(used, self.parents)

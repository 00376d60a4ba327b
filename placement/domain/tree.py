"""Trees as the search sees them: how providers are nested, where they lie, what they have, and what is assumed of that.

A set of places of a level, such as NUMA nodes or PCIe switches, is an integer, a *place mask*, so what a candidate
touches is an OR over its providers. Bits are unique within a tree and reused in the next one. Where the provider that a
place is named after matters, its *anchor*, there are positions instead of masks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from placement.domain.inventory import UNBOUNDED
from placement.domain.quantities import ResourceAmounts, summed


class PlaceLock(NamedTuple):
    """The lock of a level: whoever has taken all of the class at a place holds that exclusively, with everything below.

    The trait makes a provider a place of the level; None if every provider is one.
    """

    resource_class: str
    trait: str | None


Parents = Mapping[int, int | None]
"""Provider -> its parent, None for roots."""


def upwards(provider: int, parents: Parents) -> Iterator[int]:
    """Yield a provider and its ancestors, the root last; a cycle, which a DBA can create, ends it."""
    visited = set[int]()
    ancestor: int | None = provider
    while ancestor is not None and ancestor not in visited:
        visited.add(ancestor)
        yield ancestor
        ancestor = parents.get(ancestor)


def subtree(parents: Parents, top: int) -> set[int]:
    """Return a provider and everything below it, given the parent of each provider of its tree."""
    return {provider for provider in parents if top in upwards(provider, parents)}


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


def true_roots(parents: Parents) -> dict[int, int | None]:
    """Return the root of each provider, or None if its ancestry ends at an unknown one or in a cycle. O(providers)."""
    roots: dict[int, int | None] = {}
    for start in parents:
        path: dict[int, None] = {}
        ancestor: int | None = start
        while ancestor is not None and ancestor in parents and ancestor not in roots and ancestor not in path:
            path[ancestor] = None
            ancestor = parents[ancestor]
        root = next(reversed(path)) if ancestor is None else roots.get(ancestor)
        roots.update(dict.fromkeys(path, root))
    return roots


Position = tuple[int | None, ...]
"""For each level, outermost first, the anchor of a provider's place; None if it lies in none."""


class Places(NamedTuple):
    """Where the providers of one tree lie: the places of each that lies in any, and of each level, outermost first."""

    masks: Mapping[int, int]
    levels: tuple[int, ...]

    def counts(self, touched: int) -> tuple[int, ...]:
        """Count a set of places by level, at least 1 for each: hosts without NUMA nodes are as compact as with one."""
        return tuple([max(1, (touched & places).bit_count()) for places in self.levels])


NOWHERE = Places({}, ())


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a request, outermost first, each with its trait: the file's, then traits that the request names."""

    names: tuple[str, ...]
    traits: tuple[str, ...]

    def named(self, level: str) -> str:
        """Return the name of a level that may be written as its trait."""
        return self.names[self.traits.index(level)] if level in self.traits else level


ProviderAmounts = Mapping[int, ResourceAmounts]
"""Provider id -> resource class -> amount."""


@dataclass(frozen=True, slots=True)
class MoreTrees:
    """Empty trees like another one: its root, and how many."""

    like: int
    count: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """How the hypothetical cloud differs from a snapshot.

    Args:
        changes: the change in usage by provider and class; negative for less.
        held: places that would be held exclusively: nobody else takes anything in or below them.
        avoided: the roots of trees to leave out. Others may still take what these share with them.
        gone: the roots of those of them that share nothing either.
        more: empty trees besides; a view has them (``cloud.columns``), a search does not look into them.

    >>> overlay = Overlay().taking({7: {"VCPU": 2}}).releasing({7: {"VCPU": 3}, 8: {"PGPU": 1}})
    >>> overlay.changes, sorted(overlay.released)
    ({7: {'VCPU': -1}, 8: {'PGPU': -1}}, [7, 8])
    """

    changes: ProviderAmounts = field(default_factory=dict)
    held: frozenset[int] = frozenset()
    avoided: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    more: tuple[MoreTrees, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.changes or self.held or self.avoided or self.more)

    @property
    def classes(self) -> set[str]:
        """The classes of which more or less is in use."""
        return {name for amounts in self.changes.values() for name in amounts}

    @property
    def released(self) -> frozenset[int]:
        """The providers with less in use of some class, which may be able to serve again."""
        less = [provider for provider, amounts in self.changes.items() if min(amounts.values(), default=0) < 0]
        return frozenset(less)

    def taking(self, amounts: ProviderAmounts, *, held: Collection[int] = ()) -> "Overlay":
        """Return a copy with more in use, and more places held exclusively."""
        changed = {provider: summed([self.changes.get(provider, {}), more]) for provider, more in amounts.items()}
        return replace(self, changes={**self.changes, **changed}, held=self.held.union(held))

    def releasing(self, amounts: ProviderAmounts) -> "Overlay":
        """Return a copy with less in use."""
        return self.taking(
            {provider: {name: -amount for name, amount in less.items()} for provider, less in amounts.items()}
        )

    def within(self, providers: Collection[int]) -> "Overlay":
        """Return a copy restricted to some providers, without avoided trees.

        >>> Overlay({7: {"VCPU": 1}, 8: {"VCPU": 2}}, frozenset({8, 9})).within([7, 9])
        Overlay(changes={7: {'VCPU': 1}}, held=frozenset({9}), avoided=frozenset(), gone=frozenset(), more=())
        """
        changed = {provider: self.changes[provider] for provider in providers if provider in self.changes}
        return Overlay(changed, self.held.intersection(providers))

    def avoiding(self, roots: Collection[int]) -> "Overlay":
        """Return a copy that avoids further trees."""
        return replace(self, avoided=self.avoided.union(roots))

    def without(self, roots: Collection[int]) -> "Overlay":
        """Return a copy in which further trees are gone, and whatever they share with others."""
        return replace(self, avoided=self.avoided.union(roots), gone=self.gone.union(roots))


AS_IT_IS = Overlay()


@dataclass(slots=True)
class Tree:
    """The matching providers of one tree, and of those that share with it.

    Args:
        options: for each demand of the plan, who can serve it, in the order tried: by id, or as ``lay_out`` sorts them.
        room: (provider, contended class) -> how much all slots together may take there.
        met: provider -> a bit mask of the plan's trait sets that it meets.
        parents: filled only for requests with same_subtree.
        root_of: the root of each provider that shares with other trees, and so may not be of this one.
        sharing: all providers that share with other trees and can serve something of the request.
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
        """Set the places of the providers, and sort the options by fit: the fullest first, for all slots alike.

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
    """A provider's capacity of a class, its usage, and the units it comes in, which restrict nothing by default."""

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
    """A provider's stocks by class, never modified. The hash, part of what tells hosts apart, is computed once."""

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
        positions: the anchor of each provider's place at each level.
        foreign_providers: the providers that belong to other trees.
        held: places that are held exclusively, regardless of usage.
    """

    root: int
    parents: Mapping[int, int | None]
    names: Mapping[int, str]
    traits: Mapping[int, frozenset[str]] = field(default_factory=dict)
    stocks: Mapping[int, ProviderStocks] = field(default_factory=dict)
    positions: Mapping[int, Position] = field(default_factory=dict)
    foreign_providers: Collection[int] = frozenset()
    held: Collection[int] = frozenset()

    def own(self, providers: Iterable[int]) -> list[int]:
        """Return those providers that belong to the tree itself."""
        return [provider for provider in providers if provider not in self.foreign_providers]

    def touched(self, providers: Iterable[int]) -> tuple[int, ...]:
        """Return how many places of each level those of some providers lie in that belong to the tree itself."""
        if not (positions := [self.positions[provider] for provider in self.own(providers)]):
            return (0,) * len(self.positions[self.root])
        return tuple([len({*anchors} - {None}) for anchors in zip(*positions, strict=True)])

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

"""Groups trees of the same shape: stores once what they have in common, and in columns what differs.

A cloud has thousands of hosts of a few models. What a request can do in a tree depends on how the tree is built, its
*shape*; how often, on what is free: one number per provider and class. A column of each over all trees of one shape, a
*fleet*, is worked through in a fraction of the time it takes tree by tree.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from placement.domain.ancestry import upwards
from placement.domain.whole_cloud import WholeCloud

Cell = tuple[int, int]
"""A provider, by its number in the shape, and a class, by id. The numbers of pools are below 0."""

UnitRule = tuple[int, int, int]
"""min_unit, max_unit, step_size."""


@dataclass(frozen=True)
class TreeShape:
    """How a tree is built. Its providers are numbered, from 0 for the root.

    Args:
        parents: the number of each provider's parent; -1 for the root.
        marks: the traits and aggregates of each provider, as bits.
        units: the classes that each has inventory of, with their unit rules.
        pools: the providers that share with it and with other trees.
        name: the root, if requests name this tree.
    """

    parents: tuple[int, ...]
    marks: tuple[int, ...]
    units: tuple[tuple[tuple[int, UnitRule], ...], ...]
    pools: tuple["PoolHere", ...] = ()
    name: int | None = None

    @cached_property
    def rules(self) -> tuple[Mapping[int, UnitRule], ...]:
        """The unit rules of each provider by class."""
        return tuple([dict(units) for units in self.units])

    @cached_property
    def own_pools(self) -> Mapping[int, int]:
        """The numbers of the tree's own pools, by the numbers that these providers have in the tree."""
        return {pool.place: pool.number for pool in self.pools if pool.place >= 0}

    @cached_property
    def parents_by_number(self) -> Mapping[int, int | None]:
        """The parent of each provider of the tree, with its own pools under their pool numbers."""
        number = self.own_pools
        pairs = enumerate(self.parents)
        return {number.get(one, one): number.get(above, above) if above >= 0 else None for one, above in pairs}

    def above(self, place: int) -> list[int]:
        """Return a provider and its ancestors; in other trees, where these are unknown, all pools of its tree."""
        if place in self.parents_by_number:
            return list(upwards(place, self.parents_by_number))
        root_of = {pool.number: pool.root for pool in self.pools}
        return [pool for pool in root_of if root_of[pool] == root_of[place]]

    def most_at_once(self, place: int, name: int, pools: "Mapping[int, SharedPool]") -> int:
        """Return the most of a class that a provider gives one consumer."""
        units = self.rules[place] if place >= 0 else pools[place].units
        return units[name][1]


class PoolHere(NamedTuple):
    """A provider that shares with a tree and with others.

    Args:
        place: its number in the tree if it belongs to it, else -1.
        number: its number in all trees, below 0.
        root: the root of its own tree.
    """

    place: int
    number: int
    root: int


class DistinctTrees(NamedTuple):
    """The trees of a fleet that differ in what is free.

    Args:
        fleet: the first tree for each combination of free amounts.
        numbers: for each tree of the whole fleet, the number of its equal among these.
    """

    fleet: "Fleet"
    numbers: Sequence[int]


@dataclass
class Fleet:
    """All trees of one shape.

    Args:
        shape: how they are built.
        trees: their roots.
        capacity, free: a column for each cell, in the order of the trees.
    """

    shape: TreeShape
    trees: list[int] = field(default_factory=list)
    capacity: dict[Cell, list[int]] = field(default_factory=lambda: defaultdict(list))
    free: dict[Cell, list[int]] = field(default_factory=lambda: defaultdict(list))

    @cached_property
    def distinct(self) -> DistinctTrees:
        """The trees that differ in what is free: equal ones have room for the same number of copies of anything."""
        known: dict[tuple[int, ...], int] = {}
        rows = zip(*self.free.values(), strict=True) if self.free else [()] * len(self.trees)
        numbers = [known.setdefault(row, len(known)) for row in rows]
        if len(known) == len(numbers):
            return DistinctTrees(self, numbers)
        first = dict(zip(reversed(numbers), reversed(self.trees), strict=True))
        columns = map(list, zip(*known, strict=True))
        free = dict(zip(self.free, columns, strict=True))
        return DistinctTrees(Fleet(self.shape, [first[number] for number in range(len(known))], free=free), numbers)

    @cached_property
    def models(self) -> Mapping[tuple[int, ...], tuple[int, int]]:
        """Trees by capacities, in the order of the columns: the first one's root, and how many there are."""
        found: dict[tuple[int, ...], tuple[int, int]] = {}
        rows = list(zip(*self.capacity.values(), strict=True)) or [()] * len(self.trees)
        for root, row in zip(self.trees, rows, strict=True):
            like, trees = found.get(row, (root, 0))
            # Hypothetical trees have ids below 0; real ones take precedence.
            is_better = root < like if (root < 0) == (like < 0) else root >= 0
            found[row] = (root if is_better else like, trees + 1)
        return found


@dataclass(frozen=True, slots=True)
class SharedPool:
    """A sharing provider: its traits and aggregates, the root of its tree, its classes, and what is free."""

    provider: int
    root: int
    marks: int
    units: Mapping[int, UnitRule]
    free: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Fleets:
    """A cloud in fleets; ``pools`` by their numbers, which are below 0."""

    cloud: WholeCloud
    fleets: tuple[Fleet, ...]
    pools: Mapping[int, SharedPool]


_HeldClasses = list[tuple[int, int, int, UnitRule]]
"""What one provider has: class, capacity, free, unit rules."""

_WithParent = tuple[int, int | None]
"""A provider and its parent."""


def fleets_of(cloud: WholeCloud) -> Fleets:
    """Group the trees of a cloud into fleets. O(providers)."""
    holdings = _holdings(cloud)
    pools = _shared_pools(cloud, holdings)
    sharing: dict[int, list[int]] = defaultdict(list)
    for number, pool in pools.items():
        for root in cloud.shares[pool.provider]:
            sharing[root].append(number)
    named = {*cloud.roots.values()}
    fleets: dict[object, Fleet] = {}
    for root, members in _trees(cloud):
        own = [holdings.get(provider, []) for provider, _parent in members]
        here = _pools_here(members, [(number, pools[number]) for number in sharing[root]]) if root in sharing else ()
        key = (*_built(members, own, cloud.marks), here, root if root in named else None)
        fleet = fleets.get(key)
        if fleet is None:
            fleet = fleets[key] = Fleet(TreeShape(*key))
        fleet.trees.append(root)
        for number, holding in enumerate(own):
            for class_id, capacity, free, _units in holding:
                fleet.capacity[number, class_id].append(capacity)
                fleet.free[number, class_id].append(free)
    return Fleets(cloud, tuple(fleets.values()), pools)


def _holdings(cloud: WholeCloud) -> dict[int, _HeldClasses]:
    holdings: dict[int, _HeldClasses] = defaultdict(list)
    for provider, class_id, capacity, used, low, high, step in cloud.holdings:
        holdings[provider].append((class_id, capacity, max(0, capacity - used), (low, high, step)))
    for holding in holdings.values():
        holding.sort()
    return holdings


_Built = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[tuple[int, UnitRule], ...], ...]]


def _built(members: Sequence[_WithParent], own: Sequence[_HeldClasses], marks: Mapping[int, int]) -> _Built:
    """Return the part of a shape that describes the tree's own providers: parents, marks and units."""
    units = tuple([tuple([(one[0], one[3]) for one in holding]) for holding in own])
    if len(members) == 1:
        return (-1,), (marks.get(members[0][0], 0),), units
    place = {provider: number for number, (provider, _parent) in enumerate(members)}
    parents = [-1 if parent is None else place[parent] for _provider, parent in members]
    return tuple(parents), tuple([marks.get(provider, 0) for provider, _parent in members]), units


def _pools_here(members: Sequence[_WithParent], sharing: Sequence[tuple[int, SharedPool]]) -> tuple[PoolHere, ...]:
    place = {provider: number for number, (provider, _parent) in enumerate(members)}
    return tuple([PoolHere(place.get(pool.provider, -1), number, pool.root) for number, pool in sharing])


def _trees(cloud: WholeCloud) -> Iterator[tuple[int, list[_WithParent]]]:
    """Yield each root with the providers of its tree, parents before children, each with its parent.

    Sorted by id: which trees the budget reaches must not depend on the database's row order.
    """
    by_root: dict[int, list[_WithParent]] = defaultdict(list)
    for provider, parent, root in cloud.providers:
        by_root[root].append((provider, parent))
    for root, members in sorted(by_root.items()):
        yield root, members if len(members) == 1 else _parents_first(root, members)


def _parents_first(root: int, members: list[_WithParent]) -> list[_WithParent]:
    """Return the providers of a tree by depth, then by id."""
    children: dict[int | None, list[_WithParent]] = defaultdict(list)
    for provider, parent in sorted(members):
        if provider != root:
            children[parent].append((provider, parent))
    found: list[_WithParent] = [(root, None)]
    for provider, _parent in found:
        found += children[provider]
    return found


def _shared_pools(cloud: WholeCloud, holdings: Mapping[int, _HeldClasses]) -> dict[int, SharedPool]:
    """Return by number the providers that share with trees other than their own."""
    root_of = {provider: root for provider, _parent, root in cloud.providers if provider in cloud.shares}
    shared = [provider for provider, root in sorted(root_of.items()) if {*cloud.shares[provider]} - {root}]
    pools = {}
    for number, provider in enumerate(shared, start=1):
        own = holdings.get(provider, [])
        pools[-number] = SharedPool(
            provider,
            root_of[provider],
            cloud.marks.get(provider, 0),
            {one[0]: one[3] for one in own},
            {one[0]: one[2] for one in own},
        )
    return pools

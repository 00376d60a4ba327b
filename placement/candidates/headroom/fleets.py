"""Trees that are built alike, together: what is the same in all of them once, what differs in columns.

A cloud has thousands of hosts of a few models. What a request can do in a tree depends on how it is built, the *shape*;
how often, on what is free, which is a number for each provider and class. A column for each of these over all trees of
one shape, a *fleet*, is worked through in a fraction of the time that trees one by one would take.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from placement.domain.whole_cloud import WholeCloud

Cell = tuple[int, int]
"""A provider, by its number in the shape, and a class, by id. The number of a pool is below 0."""

Units = tuple[int, int, int]
"""min_unit, max_unit, step_size."""


@dataclass(frozen=True)
class TreeShape:
    """How a tree is built; its providers are numbered, the root is 0.

    Args:
        parents: the number of the parent of each provider; -1 for the root.
        marks: the traits and aggregates of each provider, as bits.
        units: the classes that each has inventory of, with their unit rules.
        pools: the number of each provider that shares with the tree, below 0, by the number that it has in the tree
            if it is of the tree itself, else by its own. One pool has one number in all trees.
        name: the root, if requests name this tree.
    """

    parents: tuple[int, ...]
    marks: tuple[int, ...]
    units: tuple[tuple[tuple[int, Units], ...], ...]
    pools: tuple[tuple[int, int], ...] = ()
    name: int | None = None

    @cached_property
    def rules(self) -> tuple[Mapping[int, Units], ...]:
        """The unit rules of each provider by class."""
        return tuple([dict(units) for units in self.units])

    @cached_property
    def ancestries(self) -> tuple[tuple[int, ...], ...]:
        """Each provider and all its ancestors, the root last."""
        found: list[tuple[int, ...]] = []
        for number, parent in enumerate(self.parents):
            found.append((number, *(found[parent] if 0 <= parent < number else ())))
        return tuple(found)


@dataclass
class Fleet:
    """All trees of one shape.

    Args:
        shape: how they are built.
        trees: their roots.
        capacity, free: what each has and has left of a class on a provider, in the order of the trees.
    """

    shape: TreeShape
    trees: list[int] = field(default_factory=list)
    capacity: dict[Cell, list[int]] = field(default_factory=lambda: defaultdict(list))
    free: dict[Cell, list[int]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True)
class SharedPool:
    """A provider that shares: its traits and aggregates, the root of its tree, its classes, and what is free."""

    provider: int
    root: int
    marks: int
    units: Mapping[int, Units]
    free: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Fleets:
    """A cloud in fleets; ``pools`` by their numbers, which are below 0."""

    cloud: WholeCloud
    fleets: tuple[Fleet, ...]
    pools: Mapping[int, SharedPool]


_Holding = list[tuple[int, int, int, Units]]
"""What one provider has: class, capacity, free, unit rules."""

_Member = tuple[int, int | None]
"""A provider and its parent."""


def fleets_of(cloud: WholeCloud) -> Fleets:
    """Return the trees of a cloud in fleets. O(providers)."""
    holdings = _holdings(cloud)
    numbers = {provider: -number for number, provider in enumerate(sorted(cloud.shares), start=1)}
    sharing: dict[int, list[int]] = defaultdict(list)
    for provider in numbers:
        for root in cloud.shares[provider]:
            sharing[root].append(provider)
    named = {*cloud.roots.values()}
    fleets: dict[object, Fleet] = {}
    for root, members in _trees(cloud):
        own = [holdings.get(provider, []) for provider, _parent in members]
        built = _built(members, own, cloud.marks)
        pools = _pools_of(members, sharing[root], numbers) if root in sharing else ()
        key = (*built, pools, root if root in named else None)
        fleet = fleets.get(key)
        if fleet is None:
            fleet = fleets[key] = Fleet(TreeShape(*key))
        fleet.trees.append(root)
        for number, holding in enumerate(own):
            for class_id, capacity, free, _units in holding:
                fleet.capacity[number, class_id].append(capacity)
                fleet.free[number, class_id].append(free)
    return Fleets(cloud, tuple(fleets.values()), dict(_shared_pools(cloud, numbers, holdings)))


def _holdings(cloud: WholeCloud) -> dict[int, _Holding]:
    holdings: dict[int, _Holding] = defaultdict(list)
    for provider, class_id, capacity, used, low, high, step in cloud.holdings:
        holdings[provider].append((class_id, capacity, max(0, capacity - used), (low, high, step)))
    for holding in holdings.values():
        holding.sort()
    return holdings


_Built = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[tuple[int, Units], ...], ...]]


def _built(members: Sequence[_Member], own: Sequence[_Holding], marks: Mapping[int, int]) -> _Built:
    """Return what a shape knows of the providers of a tree: parents, marks and units."""
    units = tuple([tuple([(one[0], one[3]) for one in holding]) for holding in own])
    if len(members) == 1:
        return (-1,), (marks.get(members[0][0], 0),), units
    place = {provider: number for number, (provider, _parent) in enumerate(members)}
    parents = [-1 if parent is None else place[parent] for _provider, parent in members]
    return tuple(parents), tuple([marks.get(provider, 0) for provider, _parent in members]), units


def _pools_of(
    members: Sequence[_Member], sharing: Sequence[int], numbers: Mapping[int, int]
) -> tuple[tuple[int, int], ...]:
    place = {provider: number for number, (provider, _parent) in enumerate(members)}
    return tuple([(place.get(provider, numbers[provider]), numbers[provider]) for provider in sharing])


def _trees(cloud: WholeCloud) -> Iterator[tuple[int, list[_Member]]]:
    """Yield each root with the providers of its tree, parents before their children, and their parents."""
    by_root: dict[int, list[_Member]] = defaultdict(list)
    for provider, parent, root in cloud.providers:
        by_root[root].append((provider, parent))
    for root, members in by_root.items():
        yield root, members if len(members) == 1 else _parents_first(root, members)


def _parents_first(root: int, members: list[_Member]) -> list[_Member]:
    """Return the providers of a tree by depth, then by id."""
    children: dict[int | None, list[_Member]] = defaultdict(list)
    for provider, parent in sorted(members):
        if provider != root:
            children[parent].append((provider, parent))
    found: list[_Member] = [(root, None)]
    for provider, _parent in found:
        found += children[provider]
    return found


def _shared_pools(
    cloud: WholeCloud, numbers: Mapping[int, int], holdings: Mapping[int, _Holding]
) -> Iterator[tuple[int, SharedPool]]:
    homes = {provider: root for provider, _parent, root in cloud.providers if provider in numbers}
    for provider, number in numbers.items():
        own = holdings.get(provider, [])
        units = {one[0]: one[3] for one in own}
        free = {one[0]: one[2] for one in own}
        yield number, SharedPool(provider, homes[provider], cloud.marks.get(provider, 0), units, free)

"""What each tree of a cloud can serve of several requests at a time; trees that share pools count together."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from placement.allocators.headroom import Budget, Copies, CopyCounts, JointPacking, MixedRoom, largest
from placement.candidates.headroom.counting import CountedTrees
from placement.candidates.headroom.forms import Cell, CloudInForms, TreesOfForm
from placement.candidates.headroom.options import FormOptions
from placement.candidates.headroom.totals import Headroom
from placement.candidates.headroom.ways import Ways
from placement.domain.search_plan import Plan

STEPS = 60_000
"""How many steps may be taken in all to find out what trees can serve at a time."""

STEPS_OF_A_ROOM = 10_000

MAX_GROUPS = 50
"""How many groups of trees that draw from the same pools are examined one by one; the rest count as one group."""

_Takings = Sequence[Mapping[Cell, int]]


class PoolLimit(NamedTuple):
    """What every copy of each request takes of a class in a pool, wherever it is placed, and how much of it is free."""

    amounts: CopyCounts
    free: int


@dataclass(frozen=True, slots=True)
class _ServingTrees:
    """Trees of one form, each of which can serve some of the requests.

    Args:
        trees: the trees.
        alone: for each request how many copies fit into a tree by themselves, by root.
        ways: for each request what its copies may take there; None if unknown.
        is_shared: whether any of it may come from pools.
    """

    trees: TreesOfForm
    alone: Sequence[Mapping[int, Copies]]
    ways: Sequence[_Takings | None]
    is_shared: bool

    def copies(self, root: int) -> tuple[Copies, ...]:
        return tuple([of.get(root, Copies(0, 0)) for of in self.alone])


class MixedRooms:
    """The rooms of a cloud for several requests.

    Args:
        shares: the share of all copies that each request has.
        plans: the requests.
        found: the headroom of each alone.
        cloud: the cloud.
        ruled: requests with rules beyond their plans.
    """

    def __init__(
        self,
        shares: Mapping[str, Fraction],
        plans: Mapping[str, Plan],
        found: Mapping[str, Headroom],
        cloud: CloudInForms,
        *,
        ruled: Collection[str],
    ) -> None:
        plans = {name: plans[name] for name in shares}
        self._shares = [*shares.values()]
        self._found = [found[name] for name in plans]
        self._cloud = cloud
        self._serving = [*_serving(plans, found, cloud, ruled)]
        self._draws = _fixed_draws(len(plans), self._serving)
        self._budget = Budget(STEPS)
        self._for_bounds = Budget(STEPS)

    @property
    def limits(self) -> list[PoolLimit]:
        """The limits of pools on all trees together; none unless requests draw the same from them everywhere."""
        draws = self._draws or ()
        cells = {cell for of in draws for cell in of}
        free = {cell: self._cloud.pools[cell[0]].free[cell[1]] for cell in sorted(cells)}
        return [PoolLimit(tuple([of.get(cell, 0) for of in draws]), much) for cell, much in free.items()]

    def rooms(self, caps: CopyCounts) -> Iterator[MixedRoom]:
        """Yield what trees can serve, given how many copies of each request are enough."""
        apart = [one for one in self._serving if self._draws is not None or not one.is_shared]
        for one in apart:
            yield from self._in_trees(one, caps)
        together = [one for one in self._serving if self._draws is None and one.is_shared]
        groups = sorted(_groups(together), key=len)
        rest = [tree for group in groups[MAX_GROUPS:] for tree in group]
        for group in [*groups[:MAX_GROUPS], *([rest] if rest else [])]:
            yield self._in_group(group, caps)

    def _in_trees(self, one: _ServingTrees, caps: CopyCounts) -> Iterator[MixedRoom]:
        """Yield what trees of one form can serve, each independently of the others."""
        cells = _Cells()
        # Draws that are the same everywhere are a limit for all trees together.
        known = [None if ways is None else [cells.own(0, _without_pools(way)) for way in ways] for ways in one.ways]
        ways = [of for of in known if of is not None]
        packing = JointPacking(ways, cells.kinds) if len(ways) == len(known) else None
        roots = one.trees.roots.tolist()
        columns = [one.trees.free.cell(cell).tolist() for _root, cell in cells.numbers]
        rows = zip(*columns, strict=True) if columns else [()] * len(roots)
        copies = map(one.copies, roots)
        for (row, alone), places in Counter(zip(rows, copies, strict=True)).items():
            yield self._room(packing, dict(enumerate(row)), caps, alone)._replace(places=places)

    def _in_group(self, group: "Sequence[_TreeOf]", caps: CopyCounts) -> MixedRoom:
        """Return what trees can serve together."""
        roots = {one.root for one in group}
        alone = tuple([of.among(roots) for of in self._found])
        if any([ways is None for tree in group for ways in tree.of.ways]):
            return self._room(None, {}, caps, alone)
        cells = _Cells()
        ways = [
            [cells.own(tree.root, way) for tree in group for way in tree.of.ways[number] or ()]
            for number in range(len(caps))
        ]
        index = {tree.root: (tree.of.trees, tree.number) for tree in group}
        free = {}
        for (root, (place, name)), number in cells.numbers.items():
            if place < 0:
                free[number] = self._cloud.pools[place].free[name]
            else:
                trees, in_trees = index[root]
                free[number] = int(trees.free.cell((place, name))[in_trees])
        return self._room(JointPacking(ways, cells.kinds), free, caps, alone)

    def _room(
        self, packing: JointPacking | None, free: Mapping[int, int], caps: CopyCounts, alone: tuple[Copies, ...]
    ) -> MixedRoom:
        """Return what can be served; if that takes too long, each request alone, and an upper bound."""
        enough = tuple([min(cap, copies.most) for cap, copies in zip(caps, alone, strict=True)])
        together = packing and packing.frontier(free, caps=enough, budget=self._budget.child(STEPS_OF_A_ROOM))
        if together:
            return MixedRoom(together, together)
        nothing = (0,) * len(alone)
        sure = [(*nothing[:index], one.least, *nothing[index + 1 :]) for index, one in enumerate(alone)]
        if packing:
            sure += packing.some(free, caps=enough, shares=self._shares)
            most = packing.bounding(free, caps=enough, budget=self._for_bounds.child(STEPS_OF_A_ROOM))
        else:
            most = [tuple([copies.most for copies in alone])]
        return MixedRoom(largest(sure), most)


def _serving(
    plans: Mapping[str, Plan], found: Mapping[str, Headroom], cloud: CloudInForms, ruled: Collection[str]
) -> Iterator[_ServingTrees]:
    """Yield the trees that can serve any of the requests."""
    counted: dict[int, dict[str, CountedTrees]] = defaultdict(dict)
    for name in plans:
        for one in found[name].counted:
            counted[one.trees.number][name] = one
    options = {name: FormOptions(plan, cloud) for name, plan in plans.items()}
    for trees in cloud.forms:
        there = counted.get(trees.number, {})
        if there:
            yield _ServingTrees(
                trees,
                [_by_root(there[name]) if name in there else {} for name in plans],
                [
                    _ways(plan, cloud, there[name], options[name], is_ruled=name in ruled) if name in there else ()
                    for name, plan in plans.items()
                ],
                is_shared=any([one.is_shared for one in there.values()]),
            )


def _by_root(one: CountedTrees) -> dict[int, Copies]:
    return dict(zip(one.trees.roots.tolist(), map(Copies, one.least.tolist(), one.most.tolist()), strict=True))


def _ways(
    plan: Plan, cloud: CloudInForms, one: CountedTrees, options: FormOptions, *, is_ruled: bool
) -> _Takings | None:
    if is_ruled:
        return None
    met = options.met(one.trees.number, {place for slot in one.slots for place in slot.places})
    return Ways(plan, cloud, one.trees.form, slots=one.slots, met=met).all_ways()


def _without_pools(way: Mapping[Cell, int]) -> Mapping[Cell, int]:
    return {cell: amount for cell, amount in way.items() if cell[0] >= 0}


def _fixed_draws(requests: int, serving: Sequence[_ServingTrees]) -> list[Mapping[Cell, int]] | None:
    """Return what every copy of each request takes of pools; None if that is unknown or differs between trees."""
    found: list[Mapping[Cell, int]] = []
    for number in range(requests):
        ways = [of for one in serving for of in (one.ways[number],) if of is not None]
        if any([one.ways[number] is None and one.is_shared for one in serving]):
            return None
        draws = {frozenset({(cell, much) for cell, much in way.items() if cell[0] < 0}) for of in ways for way in of}
        if len(draws) > 1:
            return None
        found.append(dict(*draws))
    return found


class _Cells:
    """Numbers the cells of one tree or several; pools are the same in all of them."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, Cell], int] = {}
        """By the root of a tree, or 0 for pools and for a single tree, and the cell in it."""

    def own(self, root: int, way: Mapping[Cell, int]) -> dict[int, int]:
        """Return what a way takes in a tree, by cell number."""
        return {
            self.numbers.setdefault((root if cell[0] >= 0 else 0, cell), len(self.numbers)): amount
            for cell, amount in way.items()
        }

    @property
    def kinds(self) -> list[list[int]]:
        """The cells of each class."""
        found: dict[int, list[int]] = defaultdict(list)
        for (_root, (_place, name)), number in self.numbers.items():
            found[name].append(number)
        return [*found.values()]


class _TreeOf(NamedTuple):
    """One of the trees of a shape, by its number there."""

    of: _ServingTrees
    number: int
    root: int


def _groups(serving: Sequence[_ServingTrees]) -> list[list[_TreeOf]]:
    """Partition trees so that no two groups draw from the same pool."""
    groups: list[tuple[set[Hashable], list[_TreeOf]]] = []
    for one in serving:
        pools: set[Hashable] = {pool.number for pool in one.trees.form.pools}
        joined = [_TreeOf(one, number, root) for number, root in enumerate(one.trees.roots.tolist())]
        for other in [group for group in groups if not group[0].isdisjoint(pools)]:
            groups.remove(other)
            pools |= other[0]
            joined = other[1] + joined
        groups.append((pools, joined))
    return [trees for _pools, trees in groups]

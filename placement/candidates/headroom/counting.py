"""Counts how many copies of one request fit into every tree of a cloud, and into all of them together."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Protocol

from placement.allocators.headroom import ENDLESS, Budget, Copies, drawn, exactly
from placement.candidates.headroom.fleets import Fleet, Fleets
from placement.candidates.headroom.formula import OpenSlot, formula_for, open_slots
from placement.candidates.headroom.options import ShapeOptions
from placement.candidates.headroom.parts import AmountsById, Column, FreeColumns, Least, OneSlot
from placement.candidates.headroom.ways import Ways
from placement.domain.search_plan import Plan


@dataclass(frozen=True, slots=True)
class Pooled:
    """A slot that pools serve, too: copies that each tree serves itself, and room in each of its pools."""

    amounts: AmountsById
    own: Column
    room: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CountedFleet:
    """Those trees of a fleet whose shape can serve a request, and how often they can.

    Args:
        fleet: the trees.
        slots: what is asked for, and which providers may serve it.
        least, most: bounds on how many copies fit into each tree, as if it had the pools to itself.
        without_pools: how many fit, counting only what pools do not serve.
        pooled: the slots that pools serve, too.
        is_shared: whether anything may come from pools.
    """

    fleet: Fleet
    slots: Sequence[OpenSlot]
    least: Column
    most: Column
    without_pools: Column
    pooled: tuple[Pooled, ...]
    is_shared: bool

    def of_all(self, fleet: Fleet, numbers: Sequence[int]) -> "CountedFleet":
        """Return the same for a whole fleet, given that of its distinct trees."""

        def column(of: Column) -> Column:
            return [*map(of.__getitem__, numbers)]

        most = column(self.most)
        return replace(
            self,
            fleet=fleet,
            least=most if self.least is self.most else column(self.least),
            most=most,
            without_pools=most if self.without_pools is self.most else column(self.without_pools),
            pooled=tuple([replace(one, own=column(one.own)) for one in self.pooled]),
        )


class CopyCounter:
    """Counts the copies of one plan in the fleets of a cloud.

    Args:
        plan: the plan.
        fleets: the cloud.
        budget: limits the steps taken where formulas are not exact.
    """

    def __init__(self, plan: Plan, fleets: Fleets, budget: Budget) -> None:
        self._plan = plan
        self._fleets = fleets
        self._budget = budget
        self._options = ShapeOptions(plan, fleets)

    def counted(self, fleet: Fleet) -> CountedFleet | None:
        """Count in one fleet; None if its trees could not serve the plan even if they were empty.

        Trees with the same amounts free are counted once.
        """
        distinct, numbers = fleet.distinct
        found = self._counted(distinct)
        return found if found is None or distinct is fleet else found.of_all(fleet, numbers)

    def _counted(self, fleet: Fleet) -> CountedFleet | None:
        rows = self._options.rows(fleet.shape)
        if rows is None:
            return None
        slots = open_slots(self._plan, self._fleets.cloud, rows)
        met = self._options.met(fleet.shape, {place for row in rows for place in row})
        formula = formula_for(self._plan, slots, fleet.shape, met)
        columns = self._columns(fleet)
        most = formula.alone.copies(columns)
        least = most
        for tied in formula.mixed if formula.is_exact else (range(len(slots)),):
            chosen = [slots[number] for number in tied]
            ways = Ways(self._sub_plan(tied), self._fleets, fleet.shape, slots=chosen, met=met)
            if not ways.is_possible:
                return None
            found = ways.copies(columns, most, self._budget)
            least = [min(before, one.least) for before, one in zip(least, found, strict=True)]
            most = [one.most for one in found]
        return CountedFleet(
            fleet,
            slots,
            least,
            most,
            without_pools=Least(formula.parts).copies(columns) if formula.pooled else most,
            pooled=tuple([self._pooled(slot, columns) for slot in formula.pooled])
            if formula.is_exact and not formula.mixed
            else (),
            is_shared=any([place < 0 for row in rows for place in row]),
        )

    def empty(self, counted: CountedFleet, capacities: Sequence[Sequence[int]]) -> list[Copies]:
        """Return how many copies fit into empty trees of a fleet, given the capacities of each, cell by cell."""
        free = dict(zip(counted.fleet.capacity, zip(*capacities, strict=True), strict=True))
        trees = counted.fleet.trees[: len(capacities)]
        found = self._counted(Fleet(counted.fleet.shape, trees, free={cell: [*row] for cell, row in free.items()}))
        return [Copies(*both) for both in zip(found.least, found.most, strict=True)] if found else []

    def _sub_plan(self, numbers: Sequence[int]) -> Plan:
        """Return the plan of all slots, or of some that are tied only by competing with each other."""
        if len(numbers) == len(self._plan.slots):
            return self._plan
        slots = tuple([self._plan.slots[number] for number in numbers])
        asked = {name for slot in slots for name, _amount in slot.resources}
        return replace(
            self._plan,
            slots=slots,
            request=replace(self._plan.request, same_subtree=()),
            contended=tuple([name for name in self._plan.contended if name in asked]),
            trait_sets=(),
        )

    def _columns(self, fleet: Fleet) -> FreeColumns:
        return FreeColumns(
            len(fleet.trees), fleet.free, {number: pool.free for number, pool in self._fleets.pools.items()}
        )

    def _pooled(self, slot: OneSlot, columns: FreeColumns) -> Pooled:
        own = tuple([place for place in slot.places if place >= 0])
        one = FreeColumns(1, {}, columns.pools)
        room = {place: one.room(place, slot.amounts)[0] for place in slot.places if place < 0}
        return Pooled(slot.amounts, OneSlot(own, slot.amounts).copies(columns), room)


class PlacedTrees(Protocol):
    """Counts the copies of a request with rules about places, given how many fit without the rules."""

    @property
    def avoided(self) -> Collection[int]:
        """The roots of trees that the request leaves out."""

    def kinds(self, roots: Sequence[int]) -> Sequence[Hashable]:
        """Return the kind of each tree: trees of one kind with equal bounds have room for equally many copies."""

    def in_trees(self, bounds: Mapping[int, int]) -> Mapping[int, Copies]:
        """Return how many copies fit into trees, by root, given how many would without the rules."""

    def in_empty(self, bounds: Mapping[int, int]) -> Mapping[int, Copies]:
        """Return the same for trees that are like these, but empty."""


def as_placed(counted: Sequence[CountedFleet], placed: PlacedTrees) -> list[CountedFleet]:
    """Return how often trees can serve a request with rules about places; pools no longer bound it."""
    kept = [one for one in (_without(one, placed.avoided) for one in counted) if one.fleet.trees]
    looks = [[*zip(placed.kinds(one.fleet.trees), one.most, strict=True)] for one in kept]
    first: dict[_Look, int] = {}
    for one, of in zip(kept, looks, strict=True):
        first |= dict(zip(reversed(of), reversed(one.fleet.trees), strict=True))
    found = placed.in_trees({root: most for (_kind, most), root in first.items() if most})
    copies = {look: found.get(root, Copies(0, 0)) for look, root in first.items()}
    least = {look: one.least for look, one in copies.items()}
    most = {look: one.most for look, one in copies.items()}
    return [
        replace(one, least=[*map(least.__getitem__, of)], most=[*map(most.__getitem__, of)], pooled=())
        for one, of in zip(kept, looks, strict=True)
    ]


_Look = tuple[Hashable, int]
"""The kind of a tree, and how many copies fit without the rules about places."""


def _without(counted: CountedFleet, roots: Collection[int]) -> CountedFleet:
    if not roots:
        return counted
    kept = [root not in roots for root in counted.fleet.trees]
    fleet = counted.fleet
    return replace(
        counted,
        fleet=Fleet(
            fleet.shape,
            list(compress(fleet.trees, kept)),
            capacity={cell: list(compress(column, kept)) for cell, column in fleet.capacity.items()},
            free={cell: list(compress(column, kept)) for cell, column in fleet.free.items()},
        ),
        least=list(compress(counted.least, kept)),
        most=list(compress(counted.most, kept)),
        without_pools=list(compress(counted.without_pools, kept)),
    )


def in_all_trees(counted: Iterable[CountedFleet], among: Collection[int] | None = None) -> Copies:
    """Return how many copies fit into some trees together, counting what they share once.

    Args:
        counted: the fleets.
        among: the roots of the trees; None for all.
    """
    alone, joined = Copies(0, 0), []
    for one in counted:
        chosen = [True] * len(one.most) if among is None else [root in among for root in one.fleet.trees]
        if one.is_shared:
            joined.append((one, chosen))
        else:
            alone = Copies(alone.least + sum(compress(one.least, chosen)), alone.most + sum(compress(one.most, chosen)))
    shared = _shared(joined)
    return Copies(alone.least + shared.least, alone.most + shared.most)


_Chosen = tuple[CountedFleet, list[bool]]


def _shared(joined: Sequence[_Chosen]) -> Copies:
    """Return bounds on how many copies fit into trees that draw from pools.

    Exact if pools serve a single slot and nothing else is shared. With several such slots, each gives an upper bound,
    and filling the trees one after the other gives a lower one.
    """
    if not joined:
        return Copies(0, 0)
    asked = {tuple([pooled.amounts for pooled in one.pooled]) for one, _chosen in joined}
    slots = len(min(asked))
    if len(asked) == 1 and slots == 1:
        return exactly(_by_flow(joined, 0))
    most = sum([sum(compress(one.most, chosen)) for one, chosen in joined])
    if len(asked) == 1 and slots:
        return Copies(_one_after_the_other(joined), min([most, *[_by_flow(joined, slot) for slot in range(slots)]]))
    # If trees share something unknown, at least the best of them can have its copies.
    return Copies(max([max(compress(one.least, chosen), default=0) for one, chosen in joined]), most)


def _by_flow(joined: Sequence[_Chosen], slot: int) -> int:
    """Return how many copies fit if pools served only one slot: a maximum flow."""
    own, wanted, room = 0, dict[frozenset[int], int](), dict[int, int]()
    for one, chosen in joined:
        pooled = one.pooled[slot]
        for most, itself in compress(zip(one.without_pools, pooled.own, strict=True), chosen):
            own += min(most, itself)
            pools = frozenset(pooled.room)
            wanted[pools] = min(ENDLESS, wanted.get(pools, 0) + max(0, most - itself))
        room |= pooled.room
    return own + drawn(wanted, room)


def _one_after_the_other(joined: Sequence[_Chosen]) -> int:
    left: dict[tuple[int, int], int] = {}
    found = 0
    for one, chosen in joined:
        for slot, pooled in enumerate(one.pooled):
            left |= {(slot, pool): left.get((slot, pool), room) for pool, room in pooled.room.items()}
        for tree in compress(range(len(chosen)), chosen):
            supplies = [
                pooled.own[tree] + sum([left[slot, pool] for pool in pooled.room])
                for slot, pooled in enumerate(one.pooled)
            ]
            copies = min(one.without_pools[tree], *supplies)
            for slot, pooled in enumerate(one.pooled):
                _take(left, slot, pooled, max(0, copies - pooled.own[tree]))
            found += copies
    return found


def _take(left: dict[tuple[int, int], int], slot: int, pooled: Pooled, units: int) -> None:
    """Take units from the pools of a slot, in any order: which of them others need less is unknown."""
    for pool in pooled.room:
        taken = min(units, left[slot, pool])
        left[slot, pool] -= taken
        units -= taken

"""Which providers can serve the demands of a plan in trees of one shape, free amounts aside."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from placement.candidates.headroom.fleets import Fleets, SharedPool, TreeShape, UnitRule
from placement.domain.search_plan import Demand, Plan
from placement.domain.whole_cloud import WholeCloud

OptionRows = list[list[int]]
"""For each demand the providers that can serve it, by number in the shape; pools are below 0."""


@dataclass(frozen=True, slots=True)
class _AskedIn:
    """A demand in the ids and bits of a cloud."""

    amounts: tuple[tuple[int, int], ...]
    is_granular: bool
    required: tuple[int, ...]
    forbidden: int
    member_of: tuple[int, ...]
    in_tree: int | None

    def suits(self, marks: int, units: Mapping[int, UnitRule], root_marks: int) -> bool:
        """Tell whether a provider can serve this if enough is free; its root's aggregates may span the tree."""
        if marks & self.forbidden or not _has_each(marks, self.required):
            return False
        if not (_has_each(marks, self.member_of) or _has_each(root_marks, self.member_of)):
            return False
        return all([name in units and _keeps(units[name], amount) for name, amount in self.amounts])


def _has_each(marks: int, sets: Iterable[int]) -> bool:
    return all([marks & any_of for any_of in sets])


def _keeps(units: UnitRule, amount: int) -> bool:
    low, high, step = units
    return low <= amount <= high and amount % step == 0


class ShapeOptions:
    """Finds the options of one plan in the shapes of a cloud."""

    def __init__(self, plan: Plan, fleets: Fleets) -> None:
        self._pools = fleets.pools
        cloud, request = fleets.cloud, plan.request
        self._asked = [_asked(demand, cloud) for demand in plan.demands]
        self._root_required = [_bits(cloud, [name]) for name in request.root_required]
        self._root_forbidden = _bits(cloud, request.root_forbidden | plan.forbidden_root_aggregates)
        self._is_possible = _is_possible(plan, cloud)
        self._trait_sets = [_bits(cloud, any_of) for any_of in plan.trait_sets]

    def rows(self, shape: TreeShape) -> OptionRows | None:
        """Return who can serve each demand; None if the root does not match or a demand has no provider."""
        root_marks = shape.marks[0]
        if not self._is_possible or root_marks & self._root_forbidden or not _has_each(root_marks, self._root_required):
            return None
        rows: OptionRows = []
        for asked in self._asked:
            rows.append(self._row(asked, shape))
            if not rows[-1]:
                return None
        return rows

    def met(self, shape: TreeShape, places: Iterable[int]) -> dict[int, int]:
        """Return which trait sets of the unsuffixed group each of some providers meets, as bits."""
        marks = {place: shape.marks[place] if place >= 0 else self._pools[place].marks for place in places}
        return {
            place: sum([1 << index for index, any_of in enumerate(self._trait_sets) if of_place & any_of])
            for place, of_place in marks.items()
        }

    def _row(self, asked: _AskedIn, shape: TreeShape) -> list[int]:
        is_here = asked.in_tree is None or shape.name == asked.in_tree
        spanning = 0 if asked.is_granular else shape.marks[0]
        row = [
            number
            for number, (marks, units) in enumerate(zip(shape.marks, shape.rules, strict=True))
            if is_here and asked.suits(marks, units, spanning)
        ]
        if not shape.pools:
            return row
        # A sharing provider is one pool for all trees, including its own.
        found = {shape.own_pools.get(number, number) for number in row}
        return sorted(found | {pool.number for pool in shape.pools if self._shares(asked, self._pools[pool.number])})

    def _shares(self, asked: _AskedIn, pool: SharedPool) -> bool:
        if asked.in_tree is not None and (not asked.is_granular or asked.in_tree != pool.root):
            return False  # in_tree keeps the unsuffixed group inside the tree.
        return asked.suits(pool.marks, pool.units, pool.marks)


def _asked(demand: Demand, cloud: WholeCloud) -> _AskedIn:
    group = demand.group
    return _AskedIn(
        amounts=tuple([(cloud.classes[name], amount) for name, amount in demand.resources]),
        is_granular=group.is_granular,
        required=tuple([_bits(cloud, any_of) for any_of in demand.required]),
        forbidden=_bits(cloud, group.forbidden | group.forbidden_aggregates),
        member_of=tuple([_bits(cloud, any_of) for any_of in group.member_of]),
        # A granular group without resources is found in any tree, as in the reference.
        in_tree=cloud.roots.get(group.in_tree, -1) if group.in_tree is not None and demand.resources else None,
    )


def _bits(cloud: WholeCloud, names: Collection[str]) -> int:
    """Return the bits of those traits or aggregates that any provider has."""
    return sum([cloud.bits[name] for name in names if name in cloud.bits])


def _is_possible(plan: Plan, cloud: WholeCloud) -> bool:
    """Tell whether names alone rule nothing out; the reference finds no provider for a group that only forbids."""
    for group in plan.request.groups:
        if group.in_tree is not None and group.in_tree not in cloud.roots:
            return False
        if not (group.resources or group.required or group.member_of):
            return False
    return True

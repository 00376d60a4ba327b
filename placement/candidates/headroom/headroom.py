"""The headroom of one request in a cloud: how many copies fit where, what the other trees lack, what is stranded."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from placement.allocators.headroom import Budget, Copies
from placement.candidates.headroom.counting import CopyCounter, CountedFleet, PlacedTrees, as_placed, in_all_trees
from placement.candidates.headroom.fleets import Fleet, Fleets
from placement.candidates.headroom.formula import formula_for
from placement.candidates.headroom.parts import FreeColumns
from placement.domain.search_plan import Plan

STEPS = 400_000
"""How many steps packing may take for one request."""


@dataclass(frozen=True, slots=True)
class HostModel:
    """Trees that are alike except for what is in use, and what one more of them, empty, would be good for.

    Args:
        like: the root of one of them.
        trees: how many there are.
        each: how many copies fit into an empty one.
    """

    like: int
    trees: int
    each: Copies


@dataclass(frozen=True, slots=True)
class Headroom:
    """How many more of a request fit.

    Args:
        copies: how many in all, counting what trees share once.
        with_room: how many trees have room.
        lacking: how many of the trees without room lack which classes, most trees first. No class is named if each
            alone would suffice, but what is free does not lie where it could be used together.
        stranded: class -> how much of it is free on trees without room, by name.
        counted: the counts that this is derived from.
    """

    copies: Copies
    with_room: int
    lacking: Mapping[tuple[str, ...], int]
    stranded: Mapping[str, int]
    counted: Sequence[CountedFleet]

    def trees(self) -> dict[int, Copies]:
        """Return for each tree with room, by root, how many fit there if it had all that is shared to itself."""
        return {
            root: Copies(least, most)
            for one in self.counted
            for root, least, most in zip(one.fleet.trees, one.least, one.most, strict=True)
            if most
        }

    def among(self, roots: Collection[int]) -> Copies:
        """Return how many fit into some trees together, counting what they share once."""
        return in_all_trees(self.counted, among=roots)

    @property
    def without_room(self) -> int:
        """How many trees could serve the request if they were empty enough, but have no room."""
        return sum(self.lacking.values())


def headroom(plan: Plan, fleets: Fleets, placed: PlacedTrees | None = None) -> Headroom:
    """Return how many more of a request fit into a cloud. O(trees) for most requests.

    Args:
        plan: the request without its rules about places.
        fleets: the cloud.
        placed: counts with these rules, if there are any.
    """
    counter = CopyCounter(plan, fleets, Budget(STEPS))
    counted = [one for fleet in fleets.fleets if (one := counter.counted(fleet)) is not None]
    copies = in_all_trees(counted)
    if placed is not None:
        counted = as_placed(counted, placed)
        found, most = in_all_trees(counted), copies.most
        copies = Copies(min(most, found.least), min(most, found.most))
    return _summed_up(plan, fleets, counted, copies)


def _summed_up(plan: Plan, fleets: Fleets, counted: Sequence[CountedFleet], copies: Copies) -> Headroom:
    """Sum up the counts of all trees."""
    lacking: Counter[tuple[str, ...]] = Counter()
    stranded: Counter[str] = Counter()
    for one in counted:
        if not all(one.most):
            full = _without_room(one)
            lacking.update(_lacking(plan, fleets, one, full))
            stranded.update(_stranded(plan, fleets, full))
    return Headroom(
        copies=copies,
        with_room=sum([len(one.most) - one.most.count(0) for one in counted]),
        lacking=dict(sorted(lacking.items(), key=_most_trees_first)),
        stranded=dict(sorted(stranded.items())),
        counted=counted,
    )


def _most_trees_first(lacking: tuple[tuple[str, ...], int]) -> tuple[object, ...]:
    """Sort by number of trees, descending, then by the names of the classes, no name coming last."""
    names, trees = lacking
    return -trees, not names, names


def _without_room(counted: CountedFleet) -> Fleet:
    """Return the trees of a fleet that have no room."""
    fleet = counted.fleet
    full = [not most for most in counted.most]
    free = {cell: list(compress(column, full)) for cell, column in fleet.free.items()}
    return Fleet(fleet.shape, list(compress(fleet.trees, full)), free=free)


def _lacking(plan: Plan, fleets: Fleets, counted: CountedFleet, full: Fleet) -> Counter[tuple[str, ...]]:
    """Return how many trees lack which classes: those that are short whatever there is of the others."""
    columns = FreeColumns(len(full.trees), full.free, {number: pool.free for number, pool in fleets.pools.items()})
    without_traits = replace(plan, trait_sets=())
    named = []
    for name in _classes(plan):
        class_id = fleets.cloud.classes[name]
        slots = [
            replace(slot, amounts=tuple([one for one in slot.amounts if one[0] == class_id])) for slot in counted.slots
        ]
        copies = formula_for(without_traits, slots, full.shape, {}).alone.copies(columns)
        named.append([name if not fitting else "" for fitting in copies])
    return Counter([tuple(filter(None, of_tree)) for of_tree in zip(*named, strict=True)])


def _classes(plan: Plan) -> list[str]:
    return sorted({name for slot in plan.slots for name, _amount in slot.resources})


def _stranded(plan: Plan, fleets: Fleets, full: Fleet) -> dict[str, int]:
    names = {fleets.cloud.classes[name]: name for name in _classes(plan)}
    found: Counter[str] = Counter()
    for (_place, class_id), column in full.free.items():
        if class_id in names:
            found[names[class_id]] += sum(column)
    return dict(found)


def models(plan: Plan, fleets: Fleets, found: Headroom, placed: PlacedTrees | None = None) -> list[HostModel]:
    """Return what one more of each model of tree would be good for, the best first."""
    counter = CopyCounter(plan, fleets, Budget(STEPS))
    models = [*_models(counter, found.counted)]
    if placed is not None:
        each = placed.in_empty({model.like: model.each.most for model in models})
        models = [replace(model, each=each[model.like]) for model in models]
    return sorted(models, key=lambda model: (-model.each.least, model.like))


def _models(counter: CopyCounter, counted: Sequence[CountedFleet]) -> Iterator[HostModel]:
    for one in counted:
        known = one.fleet.models
        for (like, trees), each in zip(known.values(), counter.empty(one, [*known]), strict=True):
            yield HostModel(like, trees, each)

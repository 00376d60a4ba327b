"""The headroom of one request in a cloud: how many copies fit where, what the other trees lack, what is stranded."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Copies
from placement.candidates.headroom.counting import (
    CopyCounter,
    CountedTrees,
    PlacedTrees,
    as_placed,
    in_all_trees,
    total,
)
from placement.candidates.headroom.division import formula_for
from placement.candidates.headroom.forms import CloudInForms, distinct_rows
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
    counted: Sequence[CountedTrees]

    def trees(self) -> dict[int, Copies]:
        """Return for each tree with room, by root, how many fit there if it had all that is shared to itself."""
        with_room = [one.chosen(one.most > 0) for one in self.counted]
        columns = [(one.trees.roots.tolist(), one.least.tolist(), one.most.tolist()) for one in with_room]
        return {root: Copies(*bounds) for of_form in columns for root, *bounds in zip(*of_form, strict=True)}

    def among(self, roots: Collection[int]) -> Copies:
        """Return how many fit into some trees together, counting what they share once."""
        return in_all_trees(self.counted, among=roots)

    @property
    def without_room(self) -> int:
        """How many trees could serve the request if they were empty enough, but have no room."""
        return sum(self.lacking.values())


def headroom(plan: Plan, cloud: CloudInForms, placed: PlacedTrees | None = None) -> Headroom:
    """Return how many more of a request fit into a cloud. O(trees) for most requests.

    Args:
        plan: the request without its rules about places.
        cloud: the cloud.
        placed: counts with these rules, if there are any.
    """
    counter = CopyCounter(plan, cloud, Budget(STEPS))
    counted = [of_form for trees in cloud.forms if (of_form := counter.counted(trees)) is not None]
    copies = in_all_trees(counted)
    if placed is not None:
        counted = as_placed(counted, placed)
        with_rules, most = in_all_trees(counted), copies.most
        copies = Copies(min(most, with_rules.least), min(most, with_rules.most))
    return _summed_up(plan, cloud, counted, copies)


def _summed_up(plan: Plan, cloud: CloudInForms, counted: Sequence[CountedTrees], copies: Copies) -> Headroom:
    """Sum up the counts of all trees."""
    lacking: Counter[tuple[str, ...]] = Counter()
    stranded: Counter[str] = Counter()
    full = [of_form.chosen(of_form.most == 0) for of_form in counted if not of_form.most.all()]
    for of_form in full:
        lacking.update(_lacking(plan, cloud, of_form))
        for name in _classes(plan):
            stranded[name] += total(cloud.free_in_trees[cloud.ids.classes[name]][of_form.trees.trees])
    return Headroom(
        copies=copies,
        with_room=sum([len(of_form.most) for of_form in counted]) - sum([len(of_form.most) for of_form in full]),
        lacking=dict(sorted(lacking.items(), key=_most_trees_first)),
        stranded={name: stranded[name] for name in sorted(stranded) if _is_held(cloud, full, name)},
        counted=counted,
    )


def _is_held(cloud: CloudInForms, full: Sequence[CountedTrees], name: str) -> bool:
    return any(class_id == cloud.ids.classes[name] for one in full for _place, class_id in one.trees.form.max_units)


def _most_trees_first(lacking: tuple[tuple[str, ...], int]) -> tuple[object, ...]:
    """Sort by number of trees, descending, then by the names of the classes, no name coming last."""
    names, trees = lacking
    return -trees, not names, names


def _lacking(plan: Plan, cloud: CloudInForms, full: CountedTrees) -> Counter[tuple[str, ...]]:
    """Return how many trees lack which classes: those that are short whatever there is of the others."""
    without_traits, names = replace(plan, trait_sets=()), _classes(plan)
    is_short = []
    for name in names:
        class_id = cloud.ids.classes[name]
        slots = [
            replace(slot, amounts=tuple([amount for amount in slot.amounts if amount[0] == class_id]))
            for slot in full.slots
        ]
        copies = formula_for(without_traits, slots, full.trees.form, {}).alone.copies(full.trees.free)
        is_short.append(copies == 0)
    rows, numbers, _first = distinct_rows(np.column_stack(is_short))
    trees = zip(rows, np.bincount(numbers).tolist(), strict=True)
    return Counter({tuple(compress(names, row)): number for row, number in trees})


def _classes(plan: Plan) -> list[str]:
    return sorted({name for slot in plan.slots for name, _amount in slot.resources})


def models(
    plan: Plan, cloud: CloudInForms, counted: Sequence[CountedTrees], placed: PlacedTrees | None = None
) -> list[HostModel]:
    """Return what one more of each model of tree would be good for, the best first."""
    counter = CopyCounter(plan, cloud, Budget(STEPS))
    models = [model for of_form in counted for model in _models(counter, of_form)]
    if placed is not None:
        each = placed.in_empty({model.like: model.each.most for model in models})
        models = [replace(model, each=each[model.like]) for model in models]
    return sorted(models, key=lambda model: (-model.each.least, model.like))


def _models(counter: CopyCounter, of_form: CountedTrees) -> Iterator[HostModel]:
    trees = of_form.trees
    likes = np.array([*trees.models], dtype=np.int64)
    firsts = trees.chosen(np.isin(trees.roots, likes))
    empty = counter.counted(firsts, firsts.empty)
    if empty is not None:
        rooms = zip(firsts.roots.tolist(), empty.least.tolist(), empty.most.tolist(), strict=True)
        for like, *each in rooms:
            yield HostModel(like, int(trees.models[like].sum()), Copies(*each))

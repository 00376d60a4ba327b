"""The headroom of one request in a cloud: how many copies fit where, what the other trees lack, what is stranded."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from placement.allocators import Budget
from placement.allocators.bundle_packing import Copies, drawn, exactly
from placement.candidates.headroom.counting import CopyCounter, CountedTrees, FormulaMaker
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.placed import PlacedCopies
from placement.candidates.serving import SplitAmount, split_amounts
from placement.cloud.providers import Flags, Ints, distinct_rows
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import CandidateRequest, Plan, plan_for

STEPS = 60_000
"""How many steps packing may take for one request."""

CountedRequest = CandidateRequest | PlannerRequest


def total(column: Ints) -> int:
    """Return a sum that no column may have room for."""
    return int(column.sum()) if not len(column) or int(column.max()) < 2**62 // len(column) else sum(column.tolist())


def in_all_trees(counted: Iterable[CountedTrees]) -> Copies:
    """Return how many copies fit into trees together, counting what they share once."""
    copies, shared = exactly(0), list[CountedTrees]()
    for of_form in counted:
        if of_form.is_shared:
            shared.append(of_form)
        else:
            copies = Copies(copies.least + total(of_form.least), copies.max_count + total(of_form.max_copies))
    joined = _joined(shared) if shared else exactly(0)
    return Copies(copies.least + joined.least, copies.max_count + joined.max_count)


def _joined(shared: Sequence[CountedTrees]) -> Copies:
    """Return bounds on how many copies fit into trees that draw from pools; exact if these serve a single slot."""
    pooled_amounts = {tuple([pooled.amounts for pooled in counted.pooled]) for counted in shared}
    slots = len(min(pooled_amounts)) if len(pooled_amounts) == 1 else 0
    flows = []
    for slot in range(slots):
        # How many copies fit if pools served only this slot: a maximum flow.
        own, demand, room = 0, dict[frozenset[int], int](), dict[int, int]()
        for counted in shared:
            pooled = counted.pooled[slot]
            own += total(np.minimum(counted.without_pools, pooled.own))
            pools = frozenset(pooled.room)
            demand[pools] = demand.get(pools, 0) + total(np.maximum(0, counted.without_pools - pooled.own))
            room |= pooled.room
        flows.append(own + drawn(demand, room))
    # At least the best of them can have its copies.
    fitting = max([int(counted.least.max(initial=0)) for counted in shared])
    if slots == 1:
        return exactly(flows[0])
    return Copies(fitting, min([sum([total(counted.max_copies) for counted in shared]), *flows]))


class HostModel(NamedTuple):
    """Trees that differ only in what is in use: the root of one, how many there are, and the copies in an empty one."""

    like: int
    trees: int
    per_tree: Copies


@dataclass(frozen=True, slots=True)
class Headroom:
    """How many more of a request fit, counting what trees share once, and into how many trees.

    ``lacking`` has how many of the others lack which classes, most first: none if each alone would suffice, but what is
    free does not lie together. ``stranded`` is what is free there, by class; ``split`` what no single provider has.
    """

    copies: Copies
    with_room: int
    lacking: Mapping[tuple[str, ...], int]
    stranded: Mapping[str, int]
    counted: Sequence[CountedTrees]
    split: Sequence[SplitAmount] = ()

    def trees(self) -> dict[int, Copies]:
        """Return for each tree with room, by root, how many fit there if it had all that is shared to itself."""
        trees = dict[int, Copies]()
        for of_form in [of_form.chosen(of_form.max_copies > 0) for of_form in self.counted]:
            columns = of_form.trees.roots.tolist(), of_form.least.tolist(), of_form.max_copies.tolist()
            trees |= {root: Copies(*bounds) for root, *bounds in zip(*columns, strict=True)}
        return trees

    def among(self, roots: Collection[int]) -> Copies:
        """Return how many fit into some trees together, counting what they share once."""
        return in_all_trees([of_form.chosen(np.isin(of_form.trees.roots, [*roots])) for of_form in self.counted])

    @property
    def without_room(self) -> int:
        """How many trees could serve the request if they were empty enough, but have no room."""
        return sum(self.lacking.values())


def headroom(counter: CopyCounter, placed: PlacedCopies | None = None) -> Headroom:
    """Return how many more of a request fit, with the rules about places if any are ``placed``. O(trees) mostly."""
    plan, cloud, budget = counter.plan, counter.cloud, Budget(STEPS)
    all_counted = [counter.counted(trees, budget) for trees in cloud.forms]
    counted = [of_form for of_form in all_counted if of_form is not None]
    copies = in_all_trees(counted)
    if placed is not None:
        counted = placed.counted(counted)
        copies = Copies(*[min(copies.max_count, bound) for bound in in_all_trees(counted)])
        if not copies.is_exact:
            copies = Copies(max(copies.least, placed.together(copies.max_count)), copies.max_count)
    lacking: Counter[tuple[str, ...]] = Counter()
    stranded: Counter[str] = Counter()
    for of_form in counted:
        if not of_form.max_copies.all():
            is_full = of_form.max_copies == 0
            lacking.update(_lacking(plan, cloud, of_form, is_full))
            for name in _classes(plan):
                if of_form.trees.has(class_id := cloud.ids.classes[name]):
                    stranded[name] += total(cloud.free_in_trees[class_id][of_form.trees.trees[is_full]])
    sharing = np.array([pool.position for pool in cloud.pools.values()], dtype=np.int64)
    return Headroom(
        copies=copies,
        with_room=sum([int(np.count_nonzero(of_form.max_copies)) for of_form in counted]),
        # No class named comes last among those that as many trees lack.
        lacking=dict(sorted(lacking.items(), key=lambda lack: (-lack[1], not lack[0], lack[0]))),
        stranded=dict(sorted(stranded.items())),
        counted=counted,
        split=[*split_amounts(plan, cloud.columns, cloud.ids.classes, sharing=sharing)]
        if lacking or not counted
        else (),
    )


def _lacking(plan: Plan, cloud: CloudInForms, counted: CountedTrees, is_full: Flags) -> Counter[tuple[str, ...]]:
    """Return how many full trees lack which classes: those that are short whatever there is of the others."""
    without_traits, names, classes = replace(plan, trait_sets=()), _classes(plan), cloud.ids.classes
    trees = counted.trees.chosen(is_full)
    lacks: list[Ints] = [np.zeros(len(trees.trees), dtype=np.int64)]
    for name in names:
        # Of the slots that ask for nothing else, only groups matter: where they may be, and whom they must not meet.
        asking = [slot for slot in counted.slots if slot.suffix or classes[name] in dict(slot.amounts)]
        of_class = [tuple([amount for amount in slot.amounts if amount[0] == classes[name]]) for slot in asking]
        slots = [replace(slot, amounts=amounts) for slot, amounts in zip(asking, of_class, strict=True)]
        copies = FormulaMaker(without_traits, slots, counted.trees.form).formula({}).alone(trees)
        lacks.append((copies == 0).astype(np.int64))
    rows, numbers, _first = distinct_rows(lacks)
    lacked = [tuple(compress(names, row[1:])) for row in rows]
    return Counter(dict(zip(lacked, np.bincount(numbers).tolist(), strict=True)))


def _classes(plan: Plan) -> list[str]:
    return sorted({name for slot in plan.slots for name, _amount in slot.resources})


def models(
    counter: CopyCounter, counted: Sequence[CountedTrees], placed: PlacedCopies | None = None
) -> list[HostModel]:
    """Return what one more of each model of tree would be good for, the best first."""
    budget, models = Budget(STEPS), list[HostModel]()
    for of_form in counted:
        numbers, firsts = of_form.trees.models
        empty = counter.counted(firsts, budget)
        if empty is not None:
            columns = firsts.roots.tolist(), numbers, empty.least.tolist(), empty.max_copies.tolist()
            models += [HostModel(like, number, Copies(*bounds)) for like, number, *bounds in zip(*columns, strict=True)]
    if placed is not None:
        copies = placed.in_empty({model.like: model.per_tree.max_count for model in models})
        models = [model._replace(per_tree=copies[model.like]) for model in models]
    return sorted(models, key=lambda model: (-model.per_tree.least, model.like))


def counted_plan(request: CountedRequest) -> Plan:
    """Return the plan of a request, without its rules about places if it ``has_rules``."""
    if isinstance(request, CandidateRequest):
        return plan_for(request)
    plan = plan_for(replace(request.plain, same_subtree=request.same_subtree))
    counts = {group.suffix: 1 if group.everything or group.per_subtree else group.count for group in request.groups}
    return replace(plan, slots=tuple([slot for slot in plan.slots for _ in range(counts[slot.suffix])]))


def has_rules(request: CountedRequest) -> bool:
    """Tell whether a request says more than slots can, so that the copies of its plan are only an upper bound."""
    if isinstance(request, CandidateRequest):
        return False
    is_ruled = [rule.required for rule in request.affinity] + [rule.required for rule in request.within]
    is_ruled += [group.everything or group.per_subtree or group.device is not None for group in request.groups]
    return any(is_ruled) or bool(request.exclusive or request.avoided_trees or request.paths)


def all_together(requests: Iterable[CountedRequest]) -> CandidateRequest:
    """Return a request that names everything the given requests name."""
    plain = [request.plain if isinstance(request, PlannerRequest) else request for request in requests]
    return CandidateRequest(
        groups=tuple([group for request in plain for group in request.groups]),
        root_required=frozenset[frozenset[str]]().union(*[request.root_required for request in plain]),
        root_forbidden=frozenset[str]().union(*[request.root_forbidden for request in plain]),
    )

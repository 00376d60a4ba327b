"""The search with only some of the conditions of a request: its plans, and the trees that it looks into.

An explanation searches the same trees dozens of times, each time with another condition left out. Which of them are
alike is found out once, by all that any of these searches can see; then one tree of each class is searched.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.candidates.compose.slots import RequestBudget, SlotComposer, useful_room
from placement.candidates.explain.explanation import (
    LOOSE,
    OF_STAGES,
    Condition,
    ConditionKind,
    any_of_value,
    subtree_condition,
    traits_condition,
)
from placement.candidates.explain.masks import HOPELESS, CloudMasks, groups_of
from placement.candidates.serving import Serving, Sharing
from placement.candidates.tree_reader import TreeReader
from placement.cloud.providers import Flags, Floats, Ints, numbered, numbered_owners, places_in
from placement.domain.search_plan import CandidateRequest, Plan
from placement.domain.tree import Tree


def with_traits_apart(plan: Plan) -> Plan:
    """Return a plan whose stages check all traits of the unsuffixed group, even if one provider serves all of it.

    So a trait that the tree lacks differs from one that another of its providers has.
    """
    loose = [demand.group.required for demand in plan.demands if not demand.group.is_granular]
    return replace(plan, trait_sets=loose[0]) if loose else plan


def stages(plan: Plan) -> Iterator[tuple[Condition, Plan]]:
    """Yield each condition that only the search can check, and the plan with it and all others before it."""
    request = plan.request
    bare = replace(request, isolate=False, same_subtree=(), combines_nested=True)
    so_far = replace(plan, request=bare, contended=(), trait_sets=())
    if plan.trait_sets:
        so_far = replace(so_far, trait_sets=plan.trait_sets)
        value = " ".join(any_of_value(any_of) for any_of in plan.trait_sets)
        yield Condition(ConditionKind.TRAIT_PLACEMENT, LOOSE, value), so_far
    granular = tuple(slot.suffix for slot in plan.slots if slot.is_granular)
    if request.isolate and len(granular) > 1:
        so_far = replace(so_far, request=replace(so_far.request, isolate=True))
        yield Condition(ConditionKind.GROUP_POLICY, granular, "isolate"), so_far
    for suffixes in request.same_subtree:
        tied = (*so_far.request.same_subtree, suffixes)
        so_far = replace(so_far, request=replace(so_far.request, same_subtree=tied))
        yield subtree_condition(suffixes), so_far
    for name in plan.contended:
        so_far = replace(so_far, contended=(*so_far.contended, name))
        asking = tuple(dict.fromkeys(slot.suffix for slot in plan.slots if name in dict(slot.resources)))
        yield Condition(ConditionKind.COMBINED_CAPACITY, asking, name), so_far
    if not request.combines_nested and len(plan.slots) > 1:
        so_far = replace(so_far, request=replace(so_far.request, combines_nested=False))
        yield Condition(ConditionKind.ONE_PROVIDER_PER_TREE), so_far


def without(plan: Plan, condition: Condition) -> Plan:
    """Return a plan without one condition that the search checks; the same plan for any other condition."""
    request = plan.request
    match condition.kind:
        case ConditionKind.TRAIT_PLACEMENT:
            return replace(plan, trait_sets=())
        case ConditionKind.REQUIRED if condition.groups == LOOSE:
            kept = tuple([any_of for any_of in plan.trait_sets if traits_condition(any_of) != condition])
            return replace(plan, trait_sets=kept)
        case ConditionKind.GROUP_POLICY:
            # Groups that may share a provider may compete there.
            slots_by_class = Counter(name for slot in plan.slots for name, _amount in slot.resources)
            contended = tuple(sorted([name for name, slots in slots_by_class.items() if slots > 1]))
            return replace(plan, request=replace(request, isolate=False), contended=contended)
        case ConditionKind.COMBINED_CAPACITY:
            return replace(plan, contended=tuple(name for name in plan.contended if name != condition.value))
        case ConditionKind.SAME_SUBTREE:
            tied = tuple(suffixes for suffixes in request.same_subtree if subtree_condition(suffixes) != condition)
            request = replace(request, same_subtree=tied)
        case ConditionKind.ONE_PROVIDER_PER_TREE:
            request = replace(request, combines_nested=True)
    return replace(plan, request=request)


def is_searched(plan: Plan, condition: Condition) -> bool:
    """Tell whether dropping a condition changes what the search does, not only which providers can serve."""
    if condition.kind in {ConditionKind.CAPACITY, ConditionKind.MAX_UNIT, ConditionKind.AMOUNT}:
        return condition.resource_class in plan.contended
    if condition.kind == ConditionKind.REQUIRED:
        return condition.groups == LOOSE
    return condition.kind in OF_STAGES


def removable_parts(plan: Plan) -> Iterator[tuple[Condition, CandidateRequest]]:
    """Yield each part with the rest of the request: classes of several, then groups, alike ones together."""
    request = plan.request
    groups_of_demands = [groups_of(plan, index) for index in range(len(plan.demands))]
    for groups, demand in zip(groups_of_demands, plan.demands, strict=True):
        for name, _amount in demand.resources if len(demand.group.resources) > 1 else ():
            less = {kept: amount for kept, amount in demand.group.resources.items() if kept != name}
            alike = [replace(group, resources=less) if group.suffix in groups else group for group in request.groups]
            yield Condition(ConditionKind.RESOURCE, groups, name), replace(request, groups=tuple(alike))
    for groups in dict.fromkeys(groups_of_demands):
        remaining = tuple([group for group in request.groups if group.suffix not in groups])
        if any(group.resources for group in remaining):
            tied = tuple([suffixes.difference(groups) for suffixes in request.same_subtree])
            less_tied = replace(request, groups=remaining, same_subtree=tuple(filter(None, tied)))
            yield Condition(ConditionKind.GROUP, groups, ",".join(groups)), less_tied


UNBOUNDED = (ConditionKind.AMOUNT, ConditionKind.COMBINED_CAPACITY)
"""Without one of these, several slots may take as much from one provider as they like."""

STEPS_OF_A_SEARCH = 40
"""The steps charged per slot of the plan for looking at a tree, besides those of the search."""


class AlikeTrees:
    """The trees of one cloud in classes of equal ones, and trees of these as the search wants them.

    ``more_columns`` tell providers apart, too. ``nested``: how they are nested matters, as it does for same_subtree.
    """

    def __init__(self, cloud: CloudMasks, *, more_columns: Sequence[Ints | Flags] = (), nested: bool = False) -> None:
        self.cloud = cloud
        self._providers = cloud.providers
        self._more_columns = more_columns
        self._nested = nested or bool(cloud.plan.request.same_subtree)
        amounts = defaultdict[str, list[int]](list)
        for name, amount in [portion for slot in cloud.plan.slots for portion in slot.resources]:
            amounts[name].append(amount)
        self._contended = [name for name, of_slots in amounts.items() if len(of_slots) > 1]
        self._requested = {name: sum(of_slots) for name, of_slots in amounts.items()}
        serving = cloud.masks.serving
        self._met = [serving.with_any_trait(any_of).astype(np.int64) for any_of in cloud.plan.trait_sets]
        """For each set of traits of the unsuffixed group, who has any of them."""
        self._rooms: dict[tuple[str, ConditionKind | None], Ints] = {}

    @cached_property
    def class_of(self) -> Ints:
        """The number of each tree's class."""
        providers = self._providers
        looks = [self._by_position(at, look) for demand in self.cloud.options for at, look in demand.looks()[:-1]]
        serving = np.flatnonzero(np.logical_or.reduce([column != HOPELESS for column in looks]))
        at = providers.with_ancestors(serving) if self._nested else serving
        is_sharing = self._by_position(self.pools, np.ones(len(self.pools), dtype=np.int64))
        columns = (*looks, *self._room(), *self._more_columns, *self._met, is_sharing)
        kinds = numbered([column[at] for column in columns])
        if self._nested:
            kinds, at = self._with_kinds_below(at, kinds)
        trees = numbered_owners(providers.trees[at], kinds, len(providers.roots))
        _pools, of_trees = np.unique(np.packbits(self._shared_with, axis=0), axis=1, return_inverse=True)
        return numbered([trees, of_trees.reshape(-1)] if len(self.pools) else [trees])

    def trees(self, indices: Ints, left_out: Condition | None) -> list[Tree]:
        """Return trees with the options of each demand if a condition is left out."""
        serving = _LooserServing(self, left_out)
        own = [demand.options(left_out).own for demand in self.cloud.options]
        return TreeReader(serving, lambda _classes: {}).build(indices, own)

    def _by_position(self, at: Ints, values: Ints) -> Ints:
        column = np.zeros(len(self._providers.ids), dtype=np.int64)
        column[at] = values
        return column

    def room_without(self, name: str, lifted: ConditionKind | None) -> Ints:
        """Return how much slots together may take of a class, but no more than they ask, a condition left out."""
        if (name, lifted) not in self._rooms:
            stock = self.cloud.masks.columns.stock(self.cloud.masks.serving.ids.classes[name])
            room = np.full(len(stock.at), self._requested[name])
            if lifted not in {ConditionKind.CAPACITY, *UNBOUNDED}:
                room = np.minimum(room, np.trunc(stock.capacity - stock.used).astype(np.int64))
            if lifted not in {ConditionKind.MAX_UNIT, *UNBOUNDED}:
                room = np.minimum(room, stock.max_unit)
            self._rooms[name, lifted] = self._by_position(stock.at, room)
        return self._rooms[name, lifted]

    def _room(self) -> Iterator[Ints]:
        """Yield what tells providers apart by the classes that slots compete for."""
        useful = useful_room(replace(self.cloud.plan, contended=tuple(self._contended)))
        for name in self._contended:
            at = self.cloud.masks.with_stock(name)
            for lifted in (ConditionKind.CAPACITY, ConditionKind.MAX_UNIT):
                amounts, number = np.unique(self.room_without(name, lifted)[at], return_inverse=True)
                of_amounts = np.array([useful[name][amount] for amount in amounts.tolist()], dtype=np.int64)
                yield self._by_position(at, np.maximum(-1, of_amounts)[number] + 1)

    @cached_property
    def pools(self) -> Ints:
        """The providers that share with other trees and can serve a demand, perhaps if a condition is left out."""
        looks = [demand.looks()[-1] for demand in self.cloud.options]
        return np.unique(np.concatenate([at[look != HOPELESS] for at, look in looks]))

    @cached_property
    def _shared_with(self) -> Flags:
        """Which pool, by number, shares with which tree."""
        flags = np.zeros((len(self.pools), len(self._providers.roots)), dtype=bool)
        for number, pool in enumerate(self.pools.tolist()):
            flags[number, self.cloud.masks.trees_shared_with[pool]] = True
        return flags

    def _with_kinds_below(self, at: Ints, kinds: Ints) -> tuple[Ints, Ints]:
        """Return the outermost of some providers, by what they and all below them are, in any order of siblings."""
        parents = places_in(at, self._providers.parent_positions[at])
        depths = np.zeros(len(at), dtype=np.int64)
        above = parents
        for _ in range(self._providers.longest_way_up):
            if not (above >= 0).any():
                break
            depths += above >= 0
            above = np.where(above >= 0, parents[above], -1)
        for depth in range(int(depths.max(initial=0)), 0, -1):
            at_depth = np.flatnonzero(depths == depth)
            kinds = numbered([kinds, numbered_owners(parents[at_depth], kinds[at_depth], len(at))])
        return kinds[depths == 0], at[depths == 0]


class _LooserServing(Serving):
    """Who can serve if a condition is left out; that nobody else holds a place is a condition among others."""

    def __init__(self, alike: AlikeTrees, condition: Condition | None) -> None:
        serving, plan = alike.cloud.masks.serving, alike.cloud.plan
        plan = without(plan, condition) if condition else plan
        super().__init__(plan, serving.ids, columns=serving.columns, sets=serving.sets)
        self._alike = alike
        self._condition = condition
        self.withheld, at, providers = None, alike.pools, serving.columns.providers
        ids, roots = providers.ids[at].tolist(), providers.roots[providers.trees[at]].tolist()
        options = [{*providers.ids[demand.options(condition).shared].tolist()} for demand in alike.cloud.options]
        trees = [alike.cloud.masks.trees_shared_with[pool] for pool in at.tolist()]
        self.sharing = Sharing(options, dict(zip(ids, roots, strict=True)), dict(zip(ids, trees, strict=True)))

    def room(self, name: str, at: Ints) -> Floats:
        """Return how much of a class all slots together may take from providers."""
        lifted = self._condition.kind if self._condition and self._condition.resource_class == name else None
        return self._alike.room_without(name, lifted)[at].astype(np.float64)


SearchInTrees = Callable[[Sequence[Tree]], Sequence[bool | None]]
"""Tells of trees whether each has a candidate; None if the steps ran out before that was known."""


class ServingTrees(NamedTuple):
    """The indices of trees that have a candidate, and of those where the steps ran out before that was told."""

    trees: Ints
    undecided: Ints


def slot_search(plan: Plan, budget: RequestBudget) -> SearchInTrees | None:
    """Return the search for candidates; None if all trees with a provider for each demand have one.

    The budget, that of all searches together, is marked as hit if steps run out.
    """
    composer, steps = SlotComposer(plan, budget), STEPS_OF_A_SEARCH * len(plan.slots)

    def serves(tree: Tree) -> bool | None:
        was_hit, budget.was_hit = budget.was_hit, False
        choice = next(composer.choices(tree), None) if budget.take(steps) else None
        is_cut_off = choice is None and budget.was_hit
        budget.was_hit = was_hit or is_cut_off
        return None if is_cut_off else choice is not None

    return None if plan.is_unconstrained else lambda trees: [*map(serves, trees)]


def serving_trees(
    alike: AlikeTrees, search: SearchInTrees | None, among: Flags, *, left_out: Condition | None = None
) -> ServingTrees:
    """Find the trees with a candidate among some with a provider for each demand, a condition left out."""
    indices = np.flatnonzero(among)
    if search is None or not len(indices):
        return ServingTrees(indices, indices[:0])
    _classes, first, class_of = np.unique(alike.class_of[indices], return_index=True, return_inverse=True)
    verdicts = search(alike.trees(indices[first], left_out))
    serves = np.array([verdict is True for verdict in verdicts])[class_of]
    undecided = np.array([verdict is None for verdict in verdicts])[class_of]
    return ServingTrees(indices[serves], indices[undecided])

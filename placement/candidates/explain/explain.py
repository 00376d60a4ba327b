"""Turns a plan and a cloud into an explanation: what each condition leaves, and which one leaves nothing.

*Near misses* are conditions whose removal alone would give candidates, with providers that show how near they are.
*Hints* are what newcomers to Placement get wrong, as far as a cloud shows it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from placement.allocators import Budget
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.explain.explanation import (
    LOOSE,
    NUMERIC,
    OF_AMOUNTS,
    Condition,
    ConditionKind,
    DemandCounts,
    Example,
    Explanation,
    Hint,
    HintKind,
    Largest,
    NearMiss,
    Remainder,
    any_of_value,
    traits_condition,
)
from placement.candidates.explain.masks import NOBODY, CloudMasks, ConditionMasks, MaskedDemand
from placement.candidates.explain.partial_search import (
    AlikeTrees,
    SearchInTrees,
    is_searched,
    removable_parts,
    serving_trees,
    slot_search,
    stages,
    with_traits_apart,
    without,
)
from placement.candidates.serving import split_amounts
from placement.cloud.providers import Flags, Ints, places_in
from placement.domain.search_plan import Plan, plan_for

STEPS_PER_TREE, STEPS_FOR_CAUSE, STEPS_FOR_NEAR_MISSES = 50_000, 1_000_000, 500_000

NOT_REMOVABLE = (ConditionKind.INVENTORY, ConditionKind.EMPTY_GROUP)
"""Without its class a demand means nothing; leaving the class out of the request is a near miss of its own."""

STEPS_OF_A_DEMAND = 5
"""The steps charged for each demand when a condition is examined, besides those of the search."""

SearchWithout = Callable[[Condition], SearchInTrees | None]
"""Returns the search of a request without a condition; None if none is needed."""

MAX_EXAMPLES, MAX_TREES = 5, 50
"""In how many trees to look for examples: thousands may lack only what one sharing provider has too little of."""

WORDS = {
    ConditionKind.REQUIRED: "lacks",
    ConditionKind.ROOT_REQUIRED: "lacks",
    ConditionKind.FORBIDDEN: "has",
    ConditionKind.ROOT_FORBIDDEN: "has",
    ConditionKind.MEMBER_OF: "not_in",
    ConditionKind.FORBIDDEN_AGGREGATES: "in",
    ConditionKind.IN_TREE: "not_in_tree",
}
"""How a provider fails a condition on its traits, aggregates or tree."""

NUMBERS = dict(zip(NUMERIC, ("free", "min_unit", "max_unit", "step_size"), strict=True))
"""Which number shows how a provider fails a condition on an amount."""


def explain(plan: Plan, masks: ConditionMasks) -> Explanation:
    """Explain why a request has no candidates, or say in how many trees it has some."""
    alike = AlikeTrees(CloudMasks(with_traits_apart(plan), masks))
    explanation, _trees = counted(alike)
    return explanation if explanation.cause is None else explained(alike, explanation)


def counted(alike: AlikeTrees) -> tuple[Explanation, Flags]:
    """Return what each condition leaves, and which one leaves nothing; and the trees left after all."""
    cloud, budget = alike.cloud, RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_CAUSE)
    searches = ((condition, slot_search(plan, budget)) for condition, plan in stages(cloud.plan))
    searched, remaining, _undecided = searched_steps(alike, searches, cloud.trees)
    steps = [*cloud.trees_left(), *searched]
    cause = cloud.first_emptied() or next((step.condition for step in steps if not step.trees), None)
    demands = tuple([DemandCounts(demand.groups, demand.demand.resources, demand.steps) for demand in cloud.demands])
    return Explanation(cause, demands, tuple(steps), complete=not budget.was_hit), remaining


def searched_steps(
    alike: AlikeTrees, searches: Iterable[tuple[Condition, SearchInTrees | None]], remaining: Flags
) -> tuple[list[Remainder], Flags, int]:
    """Return what searches leave of trees, step by step, and the last ones; of how many the last did not know.

    Trees where the steps ran out before that was known count as left.
    """
    steps, undecided = list[Remainder](), 0
    for condition, search in searches:
        served = serving_trees(alike, search, remaining)
        undecided, remaining = len(served.undecided), np.zeros(len(remaining), dtype=bool)
        remaining[np.concatenate(served)] = True
        steps.append(Remainder(condition, None, int(remaining.sum())))
    return steps, remaining, undecided


def explained(alike: AlikeTrees, explanation: Explanation) -> Explanation:
    """Add near misses and hints to an explanation of a request without candidates."""
    # Near misses get a budget of their own, because they are searched for in more trees than the cause.
    budget = RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_NEAR_MISSES)
    missed = near_misses(alike, budget)
    complete = explanation.complete and not budget.was_hit
    return replace(explanation, near_misses=missed, hints=tuple(hints(alike.cloud)), complete=complete)


def quick_cause(plan: Plan, masks: ConditionMasks) -> Condition:
    """Return why a search found nothing, for a log line and a counter, as precisely as it can without a search."""
    plan = with_traits_apart(plan)
    if (emptied := CloudMasks(plan, masks).first_emptied()) is not None:
        return emptied
    searched = [condition for condition, _plan in stages(plan)]
    return searched[0] if len(searched) == 1 else Condition(ConditionKind.TOGETHER)


def near_misses(alike: AlikeTrees, budget: RequestBudget) -> tuple[NearMiss, ...]:
    """Return the near misses in a cloud without candidates, those that would help most trees first.

    A part of the request (a resource class, a group) is named only if none of its conditions is.
    """
    cloud = alike.cloud
    missed = near_conditions(alike, budget, lambda condition: slot_search(without(cloud.plan, condition), budget))
    for part, request in removable_parts(cloud.plan):
        if not budget.take(STEPS_OF_A_DEMAND * len(cloud.demands)):
            break
        if any(_is_about(near_miss.condition, part) for near_miss in missed):
            continue
        reached_by_others = [demand.reached for demand in cloud.demands if demand.groups != part.groups]
        if reached_by_others and not np.logical_and.reduce(reached_by_others).any():
            continue
        less = CloudMasks(with_traits_apart(plan_for(request)), cloud.masks)
        served = serving_trees(AlikeTrees(less), slot_search(less.plan, budget), less.trees)
        if len(served.trees):
            shown = shortages(cloud, part, served.trees) if part.kind == ConditionKind.RESOURCE else ()
            missed.append(NearMiss(part, len(served.trees), not len(served.undecided), tuple(shown)))
    return tuple(sorted(missed, key=attrgetter("trees"), reverse=True))


def near_conditions(
    alike: AlikeTrees,
    budget: Budget,
    search_without: SearchWithout,
    *,
    is_removable: Callable[[Condition], bool] = lambda _condition: True,
) -> list[NearMiss]:
    """Return those single conditions without which there would be candidates; an amount only if none on it is one."""
    cloud = alike.cloud
    every = [condition for demand in cloud.demands for condition in demand.conditions]
    every += [condition for condition, _ in [*cloud.filters, *stages(cloud.plan)]]
    removable = [condition for condition in dict.fromkeys(every) if condition.kind not in NOT_REMOVABLE]
    missed = list(_of_conditions(alike, filter(is_removable, removable), budget, search_without))
    singly = [near_miss.condition for near_miss in missed]
    combined = {condition.value for condition in singly if condition.kind == ConditionKind.COMBINED_CAPACITY}
    amounts = [amount for demand in cloud.demands for amount in demand.amounts if amount.resource_class not in combined]
    amounts = [amount for amount in amounts if not any(amount.includes(condition) for condition in singly)]
    return [*missed, *_of_conditions(alike, filter(is_removable, amounts), budget, search_without)]


def _of_conditions(
    alike: AlikeTrees, conditions: Iterable[Condition], budget: Budget, search_without: SearchWithout
) -> Iterator[NearMiss]:
    cloud = alike.cloud
    # Start with conditions that few trees depend on, so that the budget covers as many conditions as possible.
    searched = [(condition, is_searched(cloud.plan, condition)) for condition in conditions]
    depending = [(condition, cloud.trees_without(condition, is_searched=flag)) for condition, flag in searched]
    for condition, trees in sorted(depending, key=lambda pair: pair[1].sum()):
        if not budget.take(STEPS_OF_A_DEMAND * len(cloud.demands)):
            return
        if not trees.any():
            continue
        served = serving_trees(alike, search_without(condition), trees, left_out=condition)
        if len(served.trees):
            shown = examples(cloud, condition, served.trees)
            largest_amount = largest(cloud, condition, served.trees) if condition.kind in OF_AMOUNTS else None
            yield NearMiss(condition, len(served.trees), not len(served.undecided), tuple(shown), largest_amount)


def _is_about(condition: Condition, part: Condition) -> bool:
    is_alike = condition.kind in OF_AMOUNTS and condition.resource_class == part.value
    return not set(condition.groups).isdisjoint(part.groups) and (part.kind != ConditionKind.RESOURCE or is_alike)


def examples(cloud: CloudMasks, condition: Condition, trees: Ints) -> Iterator[Example]:
    """Yield a few providers, each in a different tree, that would serve but for a condition."""
    positions = dict[int, None]()
    for position in _failing(cloud, condition, trees):
        positions[position] = None
        if len(positions) == MAX_EXAMPLES:
            break
    word = WORDS.get(condition.kind)
    shown = [NUMBERS[kind] for kind in NUMERIC if condition.kind in {kind, ConditionKind.AMOUNT}]
    for position in positions or cloud.providers.root_positions[trees[:MAX_EXAMPLES]].tolist():
        facts: dict[str, Any] = {} if word is None else {word: condition.value.removeprefix("!")}
        if shown and (numbers := _numbers(cloud, condition.resource_class, position)):
            facts = {"asked": int(condition.value.partition(":")[2]), **{name: numbers[name] for name in shown}}
        yield Example(int(cloud.providers.ids[position]), facts)


def _failing(cloud: CloudMasks, condition: Condition, trees: Ints) -> Iterator[int]:
    """Yield for each tree the position of a provider that fails a condition, if a single one can be named."""
    masks, providers = cloud.masks, cloud.providers
    if condition.kind == ConditionKind.REQUIRED and condition.groups == LOOSE:
        # Whoever would serve the unsuffixed group but, like all others, lacks a trait.
        any_of = next(any_of for any_of in cloud.plan.trait_sets if traits_condition(any_of) == condition)
        is_failing = masks.serving.flags(cloud.serving_loose) & ~masks.serving.with_any_trait(any_of)
    else:
        at = [positions for demand in cloud.demands for positions in demand.failing_only(condition)]
        is_failing = masks.serving.flags(np.concatenate([NOBODY, *at]))
    failing = np.flatnonzero(is_failing)
    # Whoever serves the unsuffixed group together has its traits.
    traits = cloud.plan.trait_sets if condition.groups == LOOSE else ()
    met = sum([masks.serving.with_any_trait(any_of).astype(int) for any_of in traits], 0 * providers.ids)
    pools = {pool: masks.trees_shared_with[pool] for pool in masks.sharing[is_failing[masks.sharing]].tolist()}
    for tree in trees[:MAX_TREES].tolist() if len(failing) else ():
        first, after = providers.starts[tree : tree + 2]
        in_tree = failing[np.searchsorted(failing, first) : np.searchsorted(failing, after)].tolist()
        in_tree += [pool for pool, shared_with in pools.items() if tree in shared_with]
        if in_tree:
            yield min(in_tree, key=lambda position: (-met[position], providers.ids[position]))


def shortages(cloud: CloudMasks, condition: Condition, trees: Ints) -> Iterator[Example]:
    """Yield the providers with the most left of a class, in trees that would serve without it."""
    name, providers = condition.value, cloud.providers
    amounts = (dict(demand.demand.resources).get(name) for demand in cloud.demands if demand.groups == condition.groups)
    requested = next(amount for amount in amounts if amount is not None)
    stock = cloud.masks.columns.stock(cloud.masks.serving.ids.classes[name])
    at = stock.at[np.isin(providers.trees[stock.at], trees)]
    free = (stock.capacity - stock.used)[places_in(stock.at, at)]
    at = at[np.lexsort((providers.ids[at], -free))]
    _trees, first = np.unique(providers.trees[at], return_index=True)
    chosen = at[np.sort(first)[:MAX_EXAMPLES]].tolist()
    for position in chosen:
        yield Example(int(providers.ids[position]), {"asked": requested, **_numbers(cloud, name, position)})


def largest(cloud: CloudMasks, condition: Condition, trees: Ints) -> Largest | None:
    """Return the largest amount of a class, the only obstacle, that a provider can give; None if nothing."""
    of_groups = [demand for demand in cloud.demands if demand.groups == condition.groups]
    amounts = [(demand, amount) for demand in of_groups for amount in demand.amounts if amount.value == condition.value]
    at = [positions for demand, amount in amounts for positions in demand.options(amount)]
    serving = cloud.masks.serving.flags(np.concatenate([NOBODY, *at]))
    if condition.groups == LOOSE and len(of_groups) == 1:
        # Nobody else serves the unsuffixed group, so the same provider has all of its traits.
        for any_of in cloud.plan.trait_sets:
            serving = serving & cloud.masks.serving.with_any_trait(any_of)
    stock = cloud.masks.columns.stock(cloud.masks.serving.ids.classes[condition.resource_class])
    reaching = np.isin(cloud.providers.trees, trees)
    for pool, shared_with in cloud.masks.trees_shared_with.items():
        reaching[pool] |= np.isin(shared_with, trees).any()
    is_counted = (serving & reaching)[stock.at]
    allocatable = np.minimum(stock.capacity - stock.used, stock.max_unit).astype(np.int64)
    allocatable = allocatable // np.maximum(1, stock.step_size) * stock.step_size
    usable = allocatable[is_counted & (allocatable >= stock.min_unit) & (allocatable > 0)]
    return Largest(int(usable.max()), int((usable == usable.max()).sum())) if len(usable) else None


def _numbers(cloud: CloudMasks, name: str, position: int) -> Mapping[str, Any]:
    """Return what a provider has of a class, writing whole capacities as integers; nothing if it has no inventory."""
    stock = cloud.masks.columns.stock(cloud.masks.serving.ids.classes[name])
    row = places_in(stock.at, np.array([position]))[0]
    if row < 0:
        return {}
    columns = (stock.capacity - stock.used, stock.min_unit, stock.max_unit, stock.step_size)
    numbers = zip(NUMBERS.values(), [column[row].item() for column in columns], strict=True)
    return {name: int(number) if number == int(number) else number for name, number in numbers}


class _NeededMark(NamedTuple):
    """A trait or an aggregate that a demand needs, as a condition, and the positions of those that have it."""

    condition: Condition
    havers: Ints


def hints(cloud: CloudMasks) -> Iterator[Hint]:
    """Yield hints on what no single provider has, what none has or the wrong one, and pools that share with none."""
    masks = cloud.masks
    for split in split_amounts(cloud.plan, masks.columns, masks.serving.ids.classes, sharing=masks.sharing):
        condition = Condition(ConditionKind.AMOUNT, value=f"{split.resource_class}:{split.amount}")
        yield Hint(HintKind.NO_SINGLE_PROVIDER, condition, split.trees, split=split)
    yield from dict.fromkeys(_nobody(cloud))
    for demand in cloud.demands:
        yield from _elsewhere(cloud, demand)
    for any_of in cloud.plan.trait_sets:  # Of the unsuffixed group, those that nobody with its resources has.
        has = masks.serving.with_any_trait(any_of)
        requirement = _NeededMark(traits_condition(any_of), masks.in_reach[has[masks.in_reach]])
        loose = cloud.serving_loose
        yield from _misplaced(cloud, HintKind.TRAIT_ELSEWHERE, requirement, lacking=loose, serving=loose)
    for demand in cloud.demands:
        yield from _sharing_with_nobody(cloud, demand)


def _nobody(cloud: CloudMasks) -> Iterator[Hint]:
    masks = cloud.masks
    for demand in cloud.demands:
        for name, _amount in demand.demand.resources:
            if not np.isin(masks.with_stock(name), masks.in_reach).any():
                yield Hint(HintKind.NO_INVENTORY, Condition(ConditionKind.INVENTORY, demand.groups, name))
        for condition in [condition for condition, havers in _requirements(cloud, demand) if not len(havers)]:
            is_trait = condition.kind == ConditionKind.REQUIRED
            yield Hint(HintKind.NO_OWNER if is_trait else HintKind.NO_MEMBER, condition)
        if (tree := demand.demand.group.in_tree) is not None and tree not in masks.serving.ids.roots:
            yield Hint(HintKind.NO_TREE, Condition(ConditionKind.IN_TREE, demand.groups, tree))
    for any_of in sorted(cloud.plan.request.root_required, key=sorted):
        if not masks.serving.with_any_trait(any_of)[masks.in_reach].any():
            yield Hint(HintKind.NO_OWNER, Condition(ConditionKind.ROOT_REQUIRED, (), any_of_value(any_of)))


def _requirements(cloud: CloudMasks, demand: MaskedDemand) -> list[_NeededMark]:
    reach, serving, group = cloud.masks.in_reach, cloud.masks.serving, demand.demand.group
    flags = [(ConditionKind.REQUIRED, any_of, serving.with_any_trait(any_of)) for any_of in group.required]
    flags += [(ConditionKind.MEMBER_OF, any_of, serving.in_any_aggregate(any_of)) for any_of in group.member_of]
    conditions = [(Condition(kind, demand.groups, any_of_value(any_of)), has) for kind, any_of, has in flags]
    return [_NeededMark(condition, reach[has[reach]]) for condition, has in conditions]


def _elsewhere(cloud: CloudMasks, demand: MaskedDemand) -> Iterator[Hint]:
    """Yield a hint for each trait and aggregate that is all a provider lacks, and that another of its tree has."""
    if not (requirements := _requirements(cloud, demand)):
        return
    stocked = cloud.masks.in_reach
    for name, _amount in demand.demand.resources:
        stocked = np.intersect1d(stocked, cloud.masks.with_stock(name), assume_unique=True)
    for requirement in requirements:
        is_trait = requirement.condition.kind == ConditionKind.REQUIRED
        hint = HintKind.TRAIT_ELSEWHERE if is_trait else HintKind.AGGREGATE_DOES_NOT_SPAN
        lacking, pools = demand.failing_only(requirement.condition)
        yield from _misplaced(cloud, hint, requirement, lacking=lacking, serving=stocked)
        if not is_trait and len(pools):
            yield from _sharers(cloud, requirement, pools)


def _sharers(cloud: CloudMasks, requirement: _NeededMark, pools: Ints) -> Iterator[Hint]:
    """Yield a hint if a provider that could share with a tree lacks only an aggregate that the tree has."""
    providers = cloud.providers
    members = requirement.havers[np.argsort(-providers.ids[requirement.havers])]
    member_in = dict(zip(providers.trees[members].tolist(), members.tolist(), strict=True))
    shared = [(tree, pool) for pool in pools.tolist() for tree in cloud.masks.trees_shared_with[pool].tolist()]
    spoilt = [(tree, pool) for tree, pool in shared if tree in member_in and providers.root_positions[tree] != pool]
    if spoilt:
        first, pool = min(spoilt, key=lambda pair: (pair[0], providers.ids[pair[1]]))
        provider, owner = int(providers.ids[pool]), int(providers.ids[member_in[first]])
        trees = len({tree for tree, _pool in spoilt})
        yield Hint(HintKind.SHARER_NOT_MEMBER, requirement.condition, trees, provider, owner)


def _sharing_with_nobody(cloud: CloudMasks, demand: MaskedDemand) -> Iterator[Hint]:
    """Yield a hint if trees lack only what a sharing provider has that is in no aggregate with any other tree."""
    serving, providers = cloud.masks.serving, cloud.providers
    is_all = len(cloud.demands) + len(cloud.filters) == 1
    trees = np.flatnonzero(~demand.reached & (cloud.fails == 1) & (not is_all))
    if not (serving.ids.shares and len(trees) and demand.demand.resources):
        return
    shares = serving.sets.with_trait(serving.ids.sharing_trait)
    users = {pool: trees[trees != providers.trees[pool]] for pool, trees in cloud.masks.trees_shared_with.items()}
    pools = [pool for pool in demand.options().own.tolist() if shares[pool] and not len(users.get(pool, NOBODY))]
    if pools:
        classes = ",".join([name for name, _amount in demand.demand.resources])
        condition = Condition(ConditionKind.INVENTORY, demand.groups, classes)
        provider, owner = int(providers.roots[trees[0]]), int(providers.ids[pools].min())
        yield Hint(HintKind.SHARER_ALONE, condition, len(trees), provider, owner)


def _misplaced(
    cloud: CloudMasks, hint: HintKind, requirement: _NeededMark, *, lacking: Ints, serving: Ints
) -> Iterator[Hint]:
    """Yield a hint if a tree where nobody could serve has one that fails only a condition, and one that meets it."""
    masks, providers = cloud.masks, cloud.providers
    helped = masks.trees_of(np.intersect1d(serving, requirement.havers, assume_unique=True))
    trees = np.flatnonzero(masks.trees_of(lacking) & masks.trees_of(requirement.havers) & ~helped)
    if len(trees):
        shown = [int(providers.ids[at[providers.trees[at] == trees[0]]].min()) for at in (lacking, requirement.havers)]
        yield Hint(hint, requirement.condition, len(trees), provider=shown[0], owner=shown[1])

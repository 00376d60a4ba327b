"""Near misses: conditions whose removal alone would give candidates, and providers that show how near they are."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from placement.allocators.budget import Budget
from placement.candidates.budget import RequestBudget
from placement.candidates.explain.alike_trees import AlikeTrees, SearchInTree, ServingTrees, SlotSearch, serving_trees
from placement.candidates.explain.cloud_masks import CloudMasks
from placement.candidates.explain.conditions import (
    LOOSE,
    NUMERIC,
    OF_AMOUNTS,
    Condition,
    ConditionKind,
    removable_parts,
    stages,
    traits_condition,
    with_traits_apart,
    without,
)
from placement.candidates.explain.explanation import Example, Largest, NearMiss
from placement.candidates.explain.provider_masks import MaskedDemand
from placement.cloud.providers import Flags, Ints, places_in
from placement.domain.search_plan import Choice, Plan, plan_for

NOT_REMOVABLE = (ConditionKind.INVENTORY, ConditionKind.EMPTY_GROUP)
"""Without its class a demand means nothing; leaving the class out of the request is a near miss of its own."""

STEPS_OF_A_DEMAND = 5
"""The steps charged for each demand when a condition is examined, besides those of the search."""

SearchWithout = Callable[[Condition], SearchInTree | None]
"""Returns the search of a request without a condition; None if it cannot be left out alone."""


MAX_EXAMPLES = 5
MAX_TREES = 50
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


def near_misses(alike: AlikeTrees, budget: RequestBudget) -> tuple[NearMiss, ...]:
    """Return the near misses in a cloud without candidates, those that would help most trees first.

    A part of the request (a resource class, a group) is named only if none of its conditions is.
    """
    cloud = alike.cloud
    found = near_conditions(alike, budget, lambda one: SlotSearch(without(cloud.plan, one), budget))
    named = [near_miss.condition for near_miss in found]
    for part, request in removable_parts(cloud.plan):
        if _spent(budget, cloud.plan):
            break
        if not any(_concerns(condition, part) for condition in named):
            near_miss = _without_part(cloud.other(with_traits_apart(plan_for(request))), part, cloud, budget)
            if near_miss is not None:
                found.append(near_miss)
                named.append(part)
    return most_trees_first(found)


def most_trees_first(found: Iterable[NearMiss]) -> tuple[NearMiss, ...]:
    """Return near misses, those that would help most trees first."""
    return tuple(sorted(found, key=lambda near_miss: -near_miss.trees))


def near_conditions(alike: AlikeTrees, budget: Budget, search_without: SearchWithout) -> list[NearMiss]:
    """Return the conditions without which there would be candidates.

    An amount is named only if no single condition on it is a near miss.
    """
    cloud = alike.cloud
    found = list(_of_conditions(alike, _conditions(cloud), budget, search_without))
    singly = [near_miss.condition for near_miss in found]
    amounts = [amount for demand in cloud.demands for amount in demand.amounts]
    untold = [amount for amount in amounts if not any(_tells(one, amount) for one in singly)]
    return [*found, *_of_conditions(alike, untold, budget, search_without)]


def _of_conditions(
    alike: AlikeTrees, conditions: Iterable[Condition], budget: Budget, search_without: SearchWithout
) -> Iterator[NearMiss]:
    cloud = alike.cloud
    # Start with conditions that few trees depend on, so that the budget covers as many conditions as possible.
    depending = [(condition, cloud.trees_without(condition)) for condition in conditions]
    for condition, trees in sorted(depending, key=lambda each: each[1].sum()):
        if _spent(budget, cloud.plan):
            return
        search = search_without(condition) if trees.any() else None
        if search is None:
            continue
        served = serving_trees(alike, search, trees, without=condition)
        if len(served.trees):
            shown = examples(cloud, condition, served)
            there = largest(cloud, condition, served.trees) if condition.kind in OF_AMOUNTS else None
            yield NearMiss(condition, len(served.trees), not len(served.undecided), tuple(shown), there)


def _without_part(less: CloudMasks, part: Condition, cloud: CloudMasks, budget: RequestBudget) -> NearMiss | None:
    """Return a part of a request as a near miss, given the cloud under the conditions of the others."""
    served = serving_trees(AlikeTrees(less), SlotSearch(less.plan, budget), less.trees)
    if not len(served.trees):
        return None
    shown = shortages(cloud, part, served.trees) if part.kind == ConditionKind.RESOURCE else ()
    return NearMiss(part, len(served.trees), not len(served.undecided), tuple(shown))


def _spent(budget: Budget, plan: Plan) -> bool:
    """Charge a budget for examining a condition; tell whether it has run out."""
    return not budget.take(STEPS_OF_A_DEMAND * len(plan.demands))


def _conditions(cloud: CloudMasks) -> list[Condition]:
    """Return every condition that may be left out, in the order of the explanation."""
    of_demands = [condition for demand in cloud.demands for condition in demand.conditions]
    of_trees = [mask.condition for mask in cloud.filters]
    of_search = [stage.condition for stage in stages(cloud.plan)]
    every = dict.fromkeys([*of_demands, *of_trees, *of_search])
    return [condition for condition in every if condition.kind not in NOT_REMOVABLE]


def _tells(condition: Condition, amount: Condition) -> bool:
    """Tell whether the near miss of a condition already says that an amount is too large."""
    combined = condition.kind == ConditionKind.COMBINED_CAPACITY and condition.value == amount.resource_class
    return combined or amount.includes(condition)


def _concerns(condition: Condition, part: Condition) -> bool:
    """Tell whether a condition is about a part of the request."""
    if not set(condition.groups) & set(part.groups):
        return False
    if part.kind == ConditionKind.RESOURCE:
        return condition.kind in OF_AMOUNTS and condition.resource_class == part.value
    return True


def examples(cloud: CloudMasks, condition: Condition, served: ServingTrees) -> Iterator[Example]:
    """Yield a few providers, each in a different tree, that would serve but for a condition."""
    positions: dict[int, None] = {}
    for position in _failing(cloud, condition, served):
        positions[position] = None
        if len(positions) == MAX_EXAMPLES:
            break
    roots = cloud.providers.root_positions[served.trees[:MAX_EXAMPLES]].tolist()
    word, shown = (
        WORDS.get(condition.kind),
        [NUMBERS[kind] for kind in NUMERIC if condition.kind in {kind, ConditionKind.AMOUNT}],
    )
    for position in positions or roots:
        facts: dict[str, Any] = {} if word is None else {word: condition.value.removeprefix("!")}
        if shown and (numbers := _numbers(cloud, condition.resource_class, position)):
            facts = {"asked": int(condition.value.partition(":")[2]), **{name: numbers[name] for name in shown}}
        yield Example(int(cloud.providers.ids[position]), facts)


def shortages(cloud: CloudMasks, condition: Condition, trees: Ints) -> Iterator[Example]:
    """Yield the providers with the most left of a class, in trees that would serve without it."""
    name, providers = condition.value, cloud.providers
    amounts = (dict(demand.asked.resources).get(name) for demand in cloud.demands if demand.groups == condition.groups)
    asked = next(amount for amount in amounts if amount is not None)
    stock = cloud.masks.columns.stock(cloud.masks.serving.ids.classes[name])
    at = stock.at[np.isin(providers.trees[stock.at], trees)]
    left = (stock.capacity - stock.used)[places_in(stock.at, at)]
    at = at[np.lexsort((providers.ids[at], -left))]
    _trees, first = np.unique(providers.trees[at], return_index=True)
    chosen = at[np.sort(first)[:MAX_EXAMPLES]].tolist()
    for position in chosen:
        yield Example(int(providers.ids[position]), {"asked": asked, **_numbers(cloud, name, position)})


def largest(cloud: CloudMasks, condition: Condition, trees: Ints) -> Largest | None:
    """Return the largest amount available of a class whose amount is the only obstacle.

    This is what a single provider can give, ignoring what else the request takes from it; None if nothing.
    """
    serving = np.zeros(len(cloud.providers.ids), dtype=bool)
    for demand in cloud.demands:
        for amount in demand.amounts:
            if demand.groups == condition.groups and amount.value == condition.value:
                serving[demand.own.options(amount)] = True
                serving[demand.shared.options(amount)] = True
    stock = cloud.masks.columns.stock(cloud.masks.serving.ids.classes[condition.resource_class])
    is_counted = serving[stock.at] & _reaches(cloud, trees)[stock.at]
    most = np.minimum(stock.capacity - stock.used, stock.max_unit).astype(np.int64)
    most = most // np.maximum(1, stock.step_size) * stock.step_size
    usable = most[is_counted & (most >= stock.min_unit) & (most > 0)]
    return Largest(int(usable.max()), int((usable == usable.max()).sum())) if len(usable) else None


def _reaches(cloud: CloudMasks, trees: Ints) -> Flags:
    """Return who is in one of some trees, or shares with one of them."""
    is_one = np.zeros(len(cloud.providers.roots), dtype=bool)
    is_one[trees] = True
    flags = is_one[cloud.providers.trees]
    for pool, shared_with in cloud.masks.trees_shared_with.items():
        flags[pool] |= is_one[shared_with].any()
    return flags


def _failing(cloud: CloudMasks, condition: Condition, served: ServingTrees) -> Iterator[int]:
    """Yield for each tree the position of a provider that fails a condition, if a single one can be named.

    That is preferably the one in the candidate found, if one was composed.
    """
    if condition.kind == ConditionKind.REQUIRED and condition.groups == LOOSE:
        yield from _without_trait(cloud, condition, served)
        return
    is_failing = np.zeros(len(cloud.providers.ids), dtype=bool)
    for demand in cloud.demands:
        is_failing[demand.failing_only(condition)] = True
    failing = np.flatnonzero(is_failing)
    pools = {
        pool: cloud.masks.trees_shared_with[pool] for pool in np.intersect1d(failing, cloud.masks.sharing).tolist()
    }
    for tree in served.trees[:MAX_TREES].tolist() if len(failing) else ():
        choice = served.choice(tree)
        if choice is not None and (chosen := [one for one in _positions(cloud, choice) if one in failing]):
            yield chosen[0]
            continue
        first, after = cloud.providers.starts[tree : tree + 2]
        own = failing[np.searchsorted(failing, first) : np.searchsorted(failing, after)].tolist()
        shared = [pool for pool, trees in pools.items() if tree in trees]
        if own or shared:
            yield min((*own, *shared), key=cloud.providers.ids.__getitem__)


def _without_trait(cloud: CloudMasks, condition: Condition, served: ServingTrees) -> Iterator[int]:
    """Yield for each tree a provider that would serve the unsuffixed group but, like all others, lacks a trait."""
    any_of = next(one for one in cloud.plan.trait_sets if traits_condition(one) == condition)
    owns = cloud.masks.serving.with_any_trait(any_of)
    loose = [demand for demand in cloud.demands if demand.groups == LOOSE]
    for tree in served.trees[:MAX_TREES].tolist():
        choice = served.choice(tree)
        if choice is None:
            serving = [position for demand in loose for position in _options_in(cloud, demand, tree)]
        else:
            placed = zip(cloud.plan.slots, _positions(cloud, choice), strict=True)
            serving = [position for slot, position in placed if not slot.is_granular]
        yield from islice([position for position in serving if not owns[position]], 1)


def _options_in(cloud: CloudMasks, demand: MaskedDemand, tree: int) -> list[int]:
    """Return who can serve a demand in a tree, by id."""
    own = demand.own.fitting
    own = own[cloud.providers.trees[own] == tree].tolist()
    shared = [pool for pool in demand.shared.fitting.tolist() if tree in cloud.masks.trees_shared_with[pool]]
    return sorted({*own, *shared}, key=cloud.providers.ids.__getitem__)


def _positions(cloud: CloudMasks, choice: Choice) -> list[int]:
    positions: list[int] = cloud.providers.positions(choice).tolist()
    return positions


def _numbers(cloud: CloudMasks, name: str, position: int) -> Mapping[str, Any]:
    """Return what a provider has of a class, writing whole capacities as integers; nothing if it has no inventory."""
    stock = cloud.masks.columns.stock(cloud.masks.serving.ids.classes[name])
    row = places_in(stock.at, np.array([position]))[0]
    if row < 0:
        return {}
    columns = (stock.capacity - stock.used, stock.min_unit, stock.max_unit, stock.step_size)
    numbers = zip(NUMBERS.values(), [column[row].item() for column in columns], strict=True)
    return {name: int(number) if number == int(number) else number for name, number in numbers}

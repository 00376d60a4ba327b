"""Near misses: conditions whose removal alone would give candidates."""

from collections.abc import Callable, Iterable, Iterator

from placement.allocators.budget import Budget
from placement.candidates.budget import RequestBudget
from placement.candidates.explain.alike_trees import AlikeTrees
from placement.candidates.explain.cloud_masks import CloudMasks
from placement.candidates.explain.conditions import OF_AMOUNTS, Condition, ConditionKind
from placement.candidates.explain.examples import examples, largest, shortages
from placement.candidates.explain.explanation import NearMiss
from placement.candidates.explain.stages import removable_parts, stages, with_traits_apart, without
from placement.candidates.explain.tree_search import SearchInTree, SlotSearch, serving_trees
from placement.domain.search_plan import Plan, plan_for

NOT_REMOVABLE = (ConditionKind.INVENTORY, ConditionKind.EMPTY_GROUP)
"""Without its class a demand means nothing; leaving the class out of the request is a near miss of its own."""

STEPS_OF_A_DEMAND = 5
"""The steps charged for each demand when a condition is examined, besides those of the search."""

SearchWithout = Callable[[Condition], SearchInTree | None]
"""Returns the search of a request without a condition; None if it cannot be left out alone."""


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

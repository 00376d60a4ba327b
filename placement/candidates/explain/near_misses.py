"""Near misses: conditions whose removal alone would give candidates."""

from collections.abc import Iterable, Iterator

from placement.candidates.budget import RequestBudget
from placement.candidates.explain.cloud import FilteredCloud
from placement.candidates.explain.conditions import OF_AMOUNTS, Condition, ConditionKind, resources_value
from placement.candidates.explain.examples import examples, largest, shortages
from placement.candidates.explain.explanation import NearMiss
from placement.candidates.explain.removable_parts import removable_parts
from placement.candidates.explain.stages import stages, with_traits_apart
from placement.domain.search_plan import plan_for

NOT_REMOVABLE = (ConditionKind.INVENTORY, ConditionKind.EMPTY_GROUP)
"""Without its class a demand means nothing; leaving the class out of the request is a near miss of its own."""

STEPS_OF_A_DEMAND = 5
"""The steps charged for each demand when a condition is examined, besides those of the search."""


def near_misses(cloud: FilteredCloud, budget: RequestBudget) -> tuple[NearMiss, ...]:
    """Return the near misses in a cloud without candidates, those that would help most trees first.

    An amount is named only if no single condition on it is a near miss; a part of the request (a resource class, a
    group) only if none of its conditions is.
    """
    found = list(_of_conditions(cloud, _conditions(cloud), budget))
    singly = [near_miss.condition for near_miss in found]
    amounts = [amount for amount in _amounts(cloud) if not any(_tells(one, amount) for one in singly)]
    found += _of_conditions(cloud, amounts, budget)
    named = [near_miss.condition for near_miss in found]
    for part, request in removable_parts(cloud.plan):
        if _spent(budget, cloud):
            break
        if not any(_concerns(condition, part) for condition in named):
            served = cloud.other(with_traits_apart(plan_for(request))).served(budget)
            if served.trees:
                shown = shortages(cloud, part, served) if part.kind == ConditionKind.RESOURCE else iter(())
                found.append(NearMiss(part, len(served.trees), not served.undecided, tuple(shown)))
                named.append(part)
    return tuple(sorted(found, key=lambda near_miss: -near_miss.trees))


def _of_conditions(cloud: FilteredCloud, conditions: Iterable[Condition], budget: RequestBudget) -> Iterator[NearMiss]:
    # Start with conditions that few trees depend on, so that the budget covers as many conditions as possible.
    depending = [(condition, cloud.trees_without(condition)) for condition in conditions]
    for condition, trees in sorted(depending, key=lambda each: len(each[1])):
        if _spent(budget, cloud):
            return
        served = cloud.served_without(condition, trees, budget)
        if served.trees:
            shown = examples(cloud, condition, served)
            there = largest(cloud, condition, served) if condition.kind in OF_AMOUNTS else None
            yield NearMiss(condition, len(served.trees), not served.undecided, tuple(shown), there)


def _spent(budget: RequestBudget, cloud: FilteredCloud) -> bool:
    """Charge a budget for examining a condition; tell whether it has run out."""
    return not budget.take(STEPS_OF_A_DEMAND * len(cloud.demands))


def _conditions(cloud: FilteredCloud) -> list[Condition]:
    """Return every condition that may be left out, in the order of the explanation."""
    of_demands = (condition for demand in cloud.demands for condition in demand.conditions)
    of_trees = (filter_.condition for filter_ in cloud.filters)
    of_search = (stage.condition for stage in stages(cloud.plan))
    every = dict.fromkeys([*of_demands, *of_trees, *of_search])
    return [condition for condition in every if condition.kind not in NOT_REMOVABLE]


def _tells(condition: Condition, amount: Condition) -> bool:
    """Tell whether the near miss of a condition already says that an amount is too large."""
    combined = condition.kind == ConditionKind.COMBINED_CAPACITY and condition.value == amount.resource_class
    return combined or amount.includes(condition)


def _amounts(cloud: FilteredCloud) -> list[Condition]:
    """Return a condition for the whole amount of each class of each demand: enough of it, in valid units."""
    return [
        Condition(ConditionKind.AMOUNT, demand.groups, resources_value([asked]))
        for demand in cloud.demands
        for asked in demand.asked.resources
    ]


def _concerns(condition: Condition, part: Condition) -> bool:
    """Tell whether a condition is about a part of the request."""
    if not set(condition.groups) & set(part.groups):
        return False
    if part.kind == ConditionKind.RESOURCE:
        return condition.kind in OF_AMOUNTS and condition.resource_class == part.value
    return True

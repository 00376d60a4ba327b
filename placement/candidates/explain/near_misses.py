"""Near misses: the conditions whose removal alone would give candidates."""

from collections.abc import Iterator

from placement.candidates.budget import RequestBudget
from placement.candidates.explain.case import Case
from placement.candidates.explain.conditions import NUMERIC, Condition, Sort
from placement.candidates.explain.examples import examples, shortages
from placement.candidates.explain.explanation import NearMiss
from placement.candidates.explain.less import parts
from placement.candidates.explain.stages import stages
from placement.domain.search_plan import plan_for

NOT_REMOVABLE = (Sort.INVENTORY, Sort.EMPTY_GROUP)
"""Without the class the rest of a demand means nothing; leaving it out of the request is a near miss of its own."""

STEPS_OF_A_DEMAND = 5
"""What it costs to tell for a demand in which trees it can be served without a condition, in steps of the search."""


def near_misses(case: Case, budget: RequestBudget) -> tuple[NearMiss, ...]:
    """Return the near misses of a case without candidates, those that would help in most trees first.

    A part of the request (a resource class, a group) is only named where none of its conditions is a near miss.
    """
    found = list(_of_conditions(case, budget))
    named = [near_miss.condition for near_miss in found]
    for part, request in parts(case.plan):
        if _spent(budget, case):
            break
        if not any(_concerns(condition, part) for condition in named):
            served = case.other(plan_for(request)).served(budget)
            if served.trees:
                shown = shortages(case, part, served) if part.sort == Sort.RESOURCE else iter(())
                found.append(NearMiss(part, len(served.trees), not served.undecided, tuple(shown)))
                named.append(part)
    return tuple(sorted(found, key=lambda near_miss: -near_miss.trees))


def _of_conditions(case: Case, budget: RequestBudget) -> Iterator[NearMiss]:
    # What few trees depend on is looked at first, so that a budget is spent on as many conditions as possible.
    for condition in sorted(_conditions(case), key=lambda condition: len(case.trees_without(condition))):
        if _spent(budget, case):
            return
        served = case.served_without(condition, budget)
        if served.trees:
            shown = examples(case, condition, served)
            yield NearMiss(condition, len(served.trees), not served.undecided, tuple(shown))


def _spent(budget: RequestBudget, case: Case) -> bool:
    """Take what looking at a condition costs from a budget; tell whether that was more than there was."""
    return not budget.take(STEPS_OF_A_DEMAND * len(case.demands))


def _conditions(case: Case) -> list[Condition]:
    """Return every condition that may be left out, in the order of the explanation."""
    of_demands = (condition for demand in case.demands for condition in demand.conditions)
    of_trees = (rule.condition for rule in case.rules)
    of_search = (stage.condition for stage in stages(case.plan))
    every = dict.fromkeys([*of_demands, *of_trees, *of_search])
    return [condition for condition in every if condition.sort not in NOT_REMOVABLE]


def _concerns(condition: Condition, part: Condition) -> bool:
    """Tell whether a condition is about a part of the request."""
    if not set(condition.groups) & set(part.groups):
        return False
    if part.sort == Sort.RESOURCE:
        return condition.sort in NUMERIC and condition.resource_class == part.value
    return True

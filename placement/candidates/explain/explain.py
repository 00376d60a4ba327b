"""Turns a plan and the facts of a cloud into an explanation: what each condition leaves, and which leaves nothing."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from placement.candidates.budget import RequestBudget
from placement.candidates.explain.cloud import FilteredCloud, cloud_under
from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.explanation import Explanation, Remainder
from placement.candidates.explain.hints import hints
from placement.candidates.explain.near_misses import near_misses
from placement.candidates.explain.stages import stages, with_traits_apart
from placement.candidates.explain.tree_filters import common
from placement.domain.facts import Facts
from placement.domain.search_plan import Plan

STEPS_PER_TREE = 50_000
STEPS_FOR_CAUSE = 1_000_000
STEPS_FOR_NEAR_MISSES = 500_000


def explain(plan: Plan, facts: Facts) -> Explanation:
    """Explain why a request has no candidates, or say in how many trees it has some.

    O(conditions x providers), once, to sort these into kinds; then filters of kinds, and a bounded search.
    """
    plan = with_traits_apart(plan)
    cloud = cloud_under(plan, facts)
    budget = RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_CAUSE)
    left = [*_trees_left(cloud, budget)]
    trees = tuple([Remainder(condition, None, len(roots)) for condition, roots in left])
    demands = tuple(demand.described for demand in cloud.demands)
    cause = next(_emptied([step for demand in demands for step in demand.steps], trees), None)
    if cause is None:
        return Explanation(None, demands, trees, complete=not budget.was_hit, serving=left[-1][1])
    # Near misses get a budget of their own, because they are searched for in more trees than the cause.
    more = RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_NEAR_MISSES)
    missed = near_misses(cloud, more)
    return Explanation(
        cause, demands, trees, missed, tuple(hints(cloud)), complete=not (budget.was_hit or more.was_hit)
    )


def _trees_left(cloud: FilteredCloud, budget: RequestBudget) -> Iterator[tuple[Condition, AbstractSet[int]]]:
    """Yield the trees left after each condition. Those that the search cannot decide count as left."""
    left: AbstractSet[int] = common(cloud.reached) or frozenset()
    yield Condition(ConditionKind.EVERY_GROUP), left
    for filter_ in cloud.filters:
        left = left & filter_.trees
        yield filter_.condition, left
    for stage in stages(cloud.plan):
        if left:
            left = cloud.search(stage.plan).served(left, budget).possible
        yield stage.condition, left


def _emptied(of_providers: Sequence[Remainder], of_trees: Sequence[Remainder]) -> Iterator[Condition]:
    """Yield the conditions after which nothing is left."""
    yield from (step.condition for step in of_providers if not step.providers)
    yield from (step.condition for step in of_trees if not step.trees)

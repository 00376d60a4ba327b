"""Turns a plan and a cloud into an explanation: what each condition leaves, and which one leaves nothing."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placement.candidates.budget import RequestBudget
from placement.candidates.explain.alike_trees import AlikeTrees, SlotSearch, serving_trees
from placement.candidates.explain.cloud_masks import CloudMasks, first_emptied
from placement.candidates.explain.conditions import Condition, ConditionKind, stages, with_traits_apart
from placement.candidates.explain.explanation import Explanation, Remainder
from placement.candidates.explain.hints import hints
from placement.candidates.explain.near_misses import near_misses
from placement.candidates.explain.provider_masks import ConditionMasks
from placement.cloud.providers import Flags
from placement.domain.search_plan import Plan

STEPS_PER_TREE = 50_000
STEPS_FOR_CAUSE = 1_000_000
STEPS_FOR_NEAR_MISSES = 500_000


class _TreesLeft(NamedTuple):
    """A condition that the search checks, and the trees left after it; undecided ones count as left."""

    condition: Condition
    trees: Flags


def explain(plan: Plan, masks: ConditionMasks) -> Explanation:
    """Explain why a request has no candidates, or say in how many trees it has some."""
    alike = AlikeTrees(CloudMasks(with_traits_apart(plan), masks))
    found, _left = counted(alike)
    return found if found.cause is None else explained(alike, found)


def counted(alike: AlikeTrees) -> tuple[Explanation, Flags]:
    """Return what each condition leaves, and which one leaves nothing; and the trees that are left after all."""
    cloud = alike.cloud
    budget = RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_CAUSE)
    searched = [*_searched(alike, budget)]
    trees = [*cloud.trees_left(), *[Remainder(each.condition, None, int(each.trees.sum())) for each in searched]]
    demands = tuple([demand.described for demand in cloud.demands])
    cause = first_emptied(cloud) or next((each.condition for each in searched if not each.trees.any()), None)
    found = Explanation(cause, demands, tuple(trees), complete=not budget.was_hit)
    return found, searched[-1].trees if searched else cloud.trees


def explained(alike: AlikeTrees, found: Explanation) -> Explanation:
    """Add near misses and hints to an explanation of a request without candidates."""
    # Near misses get a budget of their own, because they are searched for in more trees than the cause.
    budget = RequestBudget(per_tree=STEPS_PER_TREE, per_request=STEPS_FOR_NEAR_MISSES)
    missed = near_misses(alike, budget)
    complete = found.complete and not budget.was_hit
    return replace(found, near_misses=missed, hints=tuple(hints(alike.cloud)), complete=complete)


def quick_cause(plan: Plan, masks: ConditionMasks) -> Condition:
    """Return why a search found nothing, for a log line and a counter, as precisely as it can without a search."""
    plan = with_traits_apart(plan)
    if (emptied := first_emptied(CloudMasks(plan, masks))) is not None:
        return emptied
    searched = [stage.condition for stage in stages(plan)]
    return searched[0] if len(searched) == 1 else Condition(ConditionKind.TOGETHER)


def _searched(alike: AlikeTrees, budget: RequestBudget) -> Iterator[_TreesLeft]:
    """Yield the conditions that the search checks, each with the trees left after it and all before it."""
    left = alike.cloud.trees
    for stage in stages(alike.cloud.plan):
        possible = np.zeros(len(left), dtype=bool)
        possible[serving_trees(alike, SlotSearch(stage.plan, budget), left).possible] = True
        left = possible
        yield _TreesLeft(stage.condition, left)

"""Explains a planner request: what its rules leave of what single providers can serve, and what would help."""

from bisect import bisect_left
from dataclasses import replace

import numpy as np

from placement.candidates.explain.alike_trees import AlikeTrees
from placement.candidates.explain.cloud_masks import CloudMasks
from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.examples import MAX_EXAMPLES
from placement.candidates.explain.explain import counted, explained
from placement.candidates.explain.explanation import Example, Explanation, NearMiss, Remainder, Shortfall
from placement.candidates.explain.hints import hints
from placement.candidates.explain.near_misses import most_trees_first, near_conditions
from placement.candidates.explain.provider_masks import ConditionMasks
from placement.candidates.explain.rule_search import RuleSearch, RuleSearches
from placement.candidates.explain.rules import (
    largest_group,
    path_condition,
    rules_of,
    with_count,
    with_rules,
    without_path,
)
from placement.candidates.explain.stages import with_traits_apart, without
from placement.candidates.explain.tree_search import ServingTrees, serving_trees
from placement.cloud.providers import Flags
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan

FREE_PLACES = Condition(ConditionKind.HELD)
"""Needed by every request, though none asks for it: places that nobody else holds exclusively."""

NESTED = Condition(ConditionKind.PATHS)
"""All amounts of ``paths``, nested as their names say."""

OF_ROOTS = (ConditionKind.ROOT_REQUIRED, ConditionKind.ROOT_FORBIDDEN)


def explain_request(request: PlannerRequest, plan: Plan, masks: ConditionMasks, searches: RuleSearches) -> Explanation:
    """Explain why a planner request has no candidates, or say in how many trees it has some.

    Args:
        request: the request.
        plan: what it asks of single providers.
        masks: the conditions on these.
        searches: searches trees.
    """
    if request.init_containers:
        # These run in turn, so what they ask for does not add up.
        plan = replace(plan, contended=())
    explaining = _RulesExplained(request, with_traits_apart(plan), masks, searches)
    return explaining.explanation()


class _RulesExplained:
    """Explains one request; see ``explain_request``."""

    def __init__(self, request: PlannerRequest, plan: Plan, masks: ConditionMasks, searches: RuleSearches) -> None:
        self._rules = rules_of(request)
        self._request = with_rules(request, self._rules)
        """The request without what merely ranks candidates."""
        self._plan = plan
        self._searches = searches
        self._cloud = CloudMasks(plan, masks)
        self._alike = AlikeTrees(self._cloud, seen=searches.seen, nested=True)

    def explanation(self) -> Explanation:
        """Return the explanation."""
        plain, left = counted(self._alike)
        is_ruled = bool(self._rules or self._request.paths)
        if plain.cause is None:
            return self._with_rules(plain, left)
        missed = self._near_misses() if is_ruled else ()
        if missed:
            return replace(plain, near_misses=missed, hints=tuple(hints(self._cloud)))
        # Nothing helps alone; but what single providers lack may be worth knowing.
        found = explained(self._alike, plain)
        return found.with_rules_aside() if is_ruled else found

    def _with_rules(self, plain: Explanation, left: Flags) -> Explanation:
        """Extend an explanation of what single providers are asked for, which left some trees, by the rules."""
        conditions = (NESTED if self._request.paths else FREE_PLACES, *self._rules)
        steps: list[Remainder] = []
        undecided = 0
        for number, condition in enumerate(conditions):
            served = self._served(with_rules(self._request, conditions[: number + 1]), left)
            undecided, left = len(served.undecided), self._flags(served)
            steps.append(Remainder(condition, None, int(left.sum())))
        # Places are rarely held, so mention that only where it matters.
        shown = steps[1:] if steps[0] == Remainder(FREE_PLACES, None, plain.found) else steps
        ruled = replace(plain, trees=(*plain.trees, *shown), complete=plain.complete and not undecided)
        emptied = next((number for number, step in enumerate(steps) if not step.trees), None)
        if emptied is None:
            return ruled
        cause = steps[emptied].condition
        shortfall = self._shortfall(with_rules(self._request, self._rules[:emptied]), cause)
        return replace(ruled, cause=cause, shortfall=shortfall, near_misses=self._near_misses())

    def _near_misses(self) -> tuple[NearMiss, ...]:
        """Return the rules, paths and conditions whose removal alone would give candidates."""
        of_rules = [self._without_rule(rule) for rule in self._rules]
        of_paths = [self._without_path(name) for name in self._request.paths if len(self._request.paths) > 1]
        of_conditions = near_conditions(self._alike, self._searches.budget, self._search_without)
        return most_trees_first([*[one for one in (*of_rules, *of_paths) if one is not None], *of_conditions])

    def _without_rule(self, rule: Condition) -> NearMiss | None:
        less = with_rules(self._request, [one for one in self._rules if one != rule])
        return self._near_miss(rule, self._served(less, self._cloud.trees))

    def _without_path(self, name: str) -> NearMiss | None:
        request = without_path(self._request, name)
        cloud = self._cloud.other(self._searches.plan_of_paths(request))
        alike = AlikeTrees(cloud, seen=self._searches.seen, nested=True)
        served = serving_trees(alike, self._searches.of(request, cloud.plan), cloud.trees)
        return self._near_miss(path_condition(name), served)

    def _near_miss(self, condition: Condition, served: ServingTrees) -> NearMiss | None:
        if not len(served.trees):
            return None
        shown = [Example(root) for root in self._cloud.providers.roots[served.trees[:MAX_EXAMPLES]].tolist()]
        shortfall = self._shortfall(self._request, condition)
        return NearMiss(condition, len(served.trees), not len(served.undecided), tuple(shown), shortfall=shortfall)

    def _search_without(self, condition: Condition) -> RuleSearch | None:
        """Return the search without a condition on single providers or roots; None if it cannot be left out alone."""
        if self._request.paths and condition.kind not in OF_ROOTS:
            return None
        isolates = self._request.isolate and condition.kind != ConditionKind.GROUP_POLICY
        return self._searches.of(replace(self._request, isolate=isolates), without(self._plan, condition))

    def _shortfall(self, request: PlannerRequest, rule: Condition) -> Shortfall | None:
        """Return how many providers one tree could give to a rule's largest group, all else unchanged.

        None if the rule's groups want one provider each, or if no tree has even one.
        """
        group = largest_group(request, rule)
        if group is None:
            return None
        # A tree with room for some number has room for fewer.
        counts = range(group.count - 1, 0, -1)
        least_less = bisect_left(counts, 1, key=lambda count: self._is_served(with_count(request, group.suffix, count)))
        most = group.count - 1 - least_less
        return Shortfall(group.suffix, asked=group.count, most=most) if most else None

    def _served(self, request: PlannerRequest, among: Flags) -> ServingTrees:
        return serving_trees(self._alike, self._searches.of(request, self._plan), among)

    def _is_served(self, request: PlannerRequest) -> bool:
        return bool(len(self._served(request, self._cloud.trees).trees))

    def _flags(self, served: ServingTrees) -> Flags:
        flags = np.zeros(len(self._cloud.providers.roots), dtype=bool)
        flags[served.possible] = True
        return flags

"""One request in one cloud, ready to be asked which trees have candidates, also with a condition left out."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from placement.candidates.explain.conditions import Condition
from placement.candidates.explain.demands import Judge, Judged
from placement.candidates.explain.stages import without
from placement.candidates.explain.tree_rules import Intersections, TreeRule, common, tree_rules
from placement.candidates.explain.tree_search import Served, TreeSearch
from placement.candidates.search import Budget
from placement.domain.facts import Facts
from placement.domain.search_plan import Plan


class Case:
    """A plan in a cloud."""

    def __init__(self, plan: Plan, facts: Facts, judge: Judge) -> None:
        self.plan = plan
        self.facts = facts
        self.judge = judge
        self.demands: Sequence[Judged] = judge.demands(plan)
        self.rules: Sequence[TreeRule] = list(tree_rules(plan, facts))
        self._reached = [facts.trees_with(demand.own.fitting, demand.shared.fitting) for demand in self.demands]

    def other(self, plan: Plan) -> "Case":
        """Return the case of another plan in the same cloud; demands that both have are judged once."""
        return Case(plan, self.facts, self.judge)

    @property
    def reached(self) -> Sequence[AbstractSet[int]]:
        """For each demand the trees in which somebody can serve it."""
        return self._reached

    @cached_property
    def _intersections(self) -> Intersections:
        return Intersections([*self._reached, *(rule.trees for rule in self.rules)])

    def trees(self, condition: Condition | None = None) -> AbstractSet[int]:
        """Return the trees that have somebody for each demand and meet all tree rules, if a condition is left out."""
        changed: list[AbstractSet[int] | None] = []
        indices = set()
        for index, demand in enumerate(self.demands):
            own = demand.own.failing_only.get(condition) if condition else None
            shared = demand.shared.failing_only.get(condition) if condition else None
            if own or shared:
                indices.add(index)
                more = self.facts.trees_with(own or frozenset(), shared or frozenset())
                changed.append(self._reached[index] | more)
        left_out = {len(self.demands) + index for index, rule in enumerate(self.rules) if rule.condition == condition}
        kept = self._intersections.without(indices | left_out)
        return common([kept, *changed]) or frozenset()

    def served(self, budget: Budget, condition: Condition | None = None) -> Served:
        """Return the trees that have candidates, if a condition is left out."""
        roots = self.trees(condition)
        if not roots:
            return Served()
        plan = without(self.plan, condition) if condition else self.plan
        return TreeSearch(plan, self.demands, self.facts, condition).served(roots, budget)

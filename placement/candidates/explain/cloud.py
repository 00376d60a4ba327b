"""One request in one cloud: which trees have candidates, with all conditions or with one of them left out."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from placement.candidates.budget import RequestBudget
from placement.candidates.explain.conditions import Condition
from placement.candidates.explain.demands import DemandFilters, FilteredDemand
from placement.candidates.explain.lookalikes import Lookalikes
from placement.candidates.explain.provider_kinds import ProviderKinds
from placement.candidates.explain.stages import is_searched, without
from placement.candidates.explain.summed_room import SummedRoom
from placement.candidates.explain.tree_filters import Intersections, TreeFilter, common, tree_filters
from placement.candidates.explain.tree_search import SearchedTrees, TreeSearch
from placement.domain.facts import Facts
from placement.domain.search_plan import Plan


def cloud_under(plan: Plan, facts: Facts) -> "FilteredCloud":
    """Return a cloud under the filters of a plan, for all searches with this plan and those that ask for less."""
    kinds = ProviderKinds(facts, plan)
    return FilteredCloud(plan, DemandFilters(kinds), Lookalikes(kinds, SummedRoom(facts, plan)))


class FilteredCloud:
    """A cloud under the filters of a plan. ``reached`` has the trees with a provider for each demand."""

    def __init__(self, plan: Plan, demands_in: DemandFilters, lookalikes: Lookalikes) -> None:
        self.plan = plan
        self.kinds = lookalikes.kinds
        self.facts = self.kinds.facts
        self._demands_in = demands_in
        self._lookalikes = lookalikes
        self.demands: Sequence[FilteredDemand] = demands_in.demands(plan)
        self.filters: Sequence[TreeFilter] = list(tree_filters(plan, self.facts))
        self.reached: Sequence[AbstractSet[int]] = [demand.reached for demand in self.demands]

    def other(self, plan: Plan) -> "FilteredCloud":
        """Return the same cloud under the filters of another plan, reusing what is known of demands that both have."""
        return FilteredCloud(plan, self._demands_in, self._lookalikes)

    @cached_property
    def _intersections(self) -> Intersections:
        return Intersections([*self.reached, *(filter_.trees for filter_ in self.filters)])

    def trees(self) -> AbstractSet[int]:
        """Return the trees that have a provider for each demand and meet all tree filters."""
        return self._intersections.without(frozenset()) or frozenset()

    def trees_but_for(self, index: int) -> AbstractSet[int] | None:
        """Return the trees that would pass if one demand were left out; None if nothing else is asked for."""
        return self._intersections.without(frozenset({index}))

    def trees_without(self, condition: Condition) -> AbstractSet[int]:
        """Return the trees that may have candidates only if a condition is left out.

        For a condition that the search checks, these are all trees that pass the other filters; otherwise those that
        fail a filter because of it.
        """
        changed: dict[int, AbstractSet[int]] = {}
        affected: set[int] = set()
        for index, demand in enumerate(self.demands):
            more = demand.trees_failing_only(condition)
            if more:
                changed[index] = self.reached[index] | more
                affected |= more
        left_out = {
            len(self.demands) + index for index, filter_ in enumerate(self.filters) if filter_.condition == condition
        }
        searched = is_searched(self.plan, condition)
        if not (changed or left_out or searched):
            return affected
        kept = self._intersections.without(changed.keys() | left_out)
        trees = common([kept, *changed.values()]) or frozenset()
        if searched:
            return trees
        ruled_out = [trees - filter_.trees for filter_ in self.filters if filter_.condition == condition]
        return trees & affected.union(*ruled_out)

    def served(self, budget: RequestBudget) -> SearchedTrees:
        """Return the trees that have candidates."""
        return self.search(self.plan).served(self.trees(), budget)

    def served_without(self, condition: Condition, among: AbstractSet[int], budget: RequestBudget) -> SearchedTrees:
        """Return which of the ``trees_without`` a condition have candidates if it is left out."""
        return self.search(without(self.plan, condition), condition).served(among, budget)

    def search(self, plan: Plan, left_out: Condition | None = None) -> TreeSearch:
        """Return a search for a plan with the same demands, perhaps with a condition left out."""
        return TreeSearch(plan, self.demands, self._lookalikes, without=left_out)

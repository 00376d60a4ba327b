"""Asks the planner's search in which trees a request with some of its rules has a candidate."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from placement.allocators.budget import Budget
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.tree_search import ServingVerdict
from placement.candidates.planner.planner_trees import Deciding
from placement.candidates.serving import Serving
from placement.cloud.providers import Flags, Ints
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree


class RuleSearches(NamedTuple):
    """What it takes to search for a planner request, whichever of its rules are left out.

    Args:
        composer_for: returns the composer of a request with its plan.
        plan_of_paths: returns the plan of a request with other paths.
        outlines_of: returns the outlines of trees.
        seen: what tells providers apart besides what they can serve.
        budget: the steps of all searches together.
    """

    composer_for: Callable[[PlannerRequest, Plan], ProposalComposer]
    plan_of_paths: Callable[[PlannerRequest], Plan]
    outlines_of: Callable[[Sequence[Tree]], Sequence[PlannerTree]]
    seen: Sequence[Ints]
    budget: Budget

    def of(self, request: PlannerRequest, plan: Plan) -> "RuleSearch":
        """Return the search for a request with its plan."""
        return RuleSearch(self.composer_for(request, plan), self)


class RuleSearch:
    """Searches trees for candidates of a planner request.

    Args:
        composer: composes the request.
        searches: what else it takes.
    """

    is_needed = True

    def __init__(self, composer: ProposalComposer, searches: RuleSearches) -> None:
        self._composer = composer
        self._searches = searches

    def verdicts(self, trees: Sequence[Tree]) -> list[ServingVerdict]:
        """Tell of each tree whether it has a candidate."""
        composer = self._composer
        hopeful = [tree for tree in trees if not (composer.is_hopeless(tree) or composer.lacks_room(tree))]
        outlines = dict(zip([tree.root for tree in hopeful], self._searches.outlines_of(hopeful), strict=True))
        return [
            ServingVerdict(self._serves(tree, outlines[tree.root]) if tree.root in outlines else False)
            for tree in trees
        ]

    def _serves(self, tree: Tree, outline: PlannerTree) -> bool | None:
        budget = self._searches.budget
        return None if budget.is_used_up else self._composer.serves(tree, outline, budget)


def columns_seen(serving: Serving, deciding: Deciding, *, in_use: Flags | None = None) -> list[Ints]:
    """Return what the planner's search tells providers apart by, besides what they can serve.

    Args:
        serving: the columns, and who has which trait.
        deciding: the traits and classes that decide about a tree.
        in_use: which providers are in use, if that matters.
    """
    seen = [serving.sets.with_trait(trait_id).astype(np.int64) for trait_id in deciding.traits]
    for class_id in sorted(deciding.classes):
        stock = serving.columns.stock(class_id)
        for amounts in stock[1:]:
            column = np.zeros(len(serving.columns.providers.ids), dtype=np.int64)
            # Negative capacities are as good as none.
            column[stock.at] = np.maximum(-1, amounts.astype(np.int64)) + 2
            seen.append(column)
    return seen if in_use is None else [*seen, in_use.astype(np.int64)]

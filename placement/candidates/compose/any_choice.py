"""Rules out trees without a provider for each group of a planner request, before their details are read.

Every proposal of the planner contains a choice of the plain search: one provider for each group, with the same traits,
isolation and same_subtrees. So a host without any choice has no proposal, nor has any other of the same canonical form.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from placement.candidates.budget import RequestBudget
from placement.candidates.canonical import Memo
from placement.candidates.compose.slots import SlotComposer
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree

STEPS_OF_A_TREE = 1_000
STEPS = 200_000
"""The most steps for one request. Trees that are not ruled out by then are composed."""

MAX_FORMS = 10_000
"""How many forms of trees to remember: in a busy cloud there are thousands, each of them small."""

ParentsIn = Callable[[AbstractSet[int]], Mapping[int, int | None]]
"""Reads the parents of all providers of the trees with some roots."""


# Without it, three GPUs on a switch of two are refused by 400 hosts in 360 ms of CPU instead of 110.
class AnyChoice:
    """The choices of single providers for one request.

    Args:
        request: the request.
        parents_in: reads parents, which matter if groups are tied.
    """

    def __init__(self, request: PlannerRequest, parents_in: ParentsIn) -> None:
        plan = plan_for(replace(request.plain, same_subtree=request.same_subtree))
        # A group with an open count may end up with no provider; several providers together may have more traits than
        # each of them; and hierarchical names have a plan of their own.
        is_open = any([one.per_subtree or one.everything for one in request.groups])
        has_more_traits = bool(plan.trait_sets) and any([one.count > 1 and not one.suffix for one in request.groups])
        self._matters = not (request.paths or is_open or has_more_traits or plan.is_unconstrained)
        self._parents_in = parents_in if request.same_subtree else None
        self._budget = RequestBudget(per_tree=STEPS_OF_A_TREE, per_request=STEPS)
        self._composer = SlotComposer(plan, self._budget)
        self._known: Memo[bool] = Memo(MAX_FORMS)

    def lacking_in(self, trees: Sequence[Tree]) -> set[int]:
        """Return the roots of the trees that certainly have no choice."""
        if not trees or not self._matters:
            return set()
        if self._parents_in is not None:
            others = {tree.root_of[one] for tree in trees for row in tree.options for one in row if one in tree.root_of}
            parents = self._parents_in({tree.root for tree in trees} | others)
            trees = [replace(tree, parents=parents) for tree in trees]
        return {tree.root for tree in trees if self._is_lacking(tree)}

    def _is_lacking(self, tree: Tree) -> bool:
        form, _providers = self._composer.sketcher.sketch(tree)
        known = self._known.get(form)
        if known is None:
            self._budget.was_hit = False
            known = next(self._composer.searched(tree), None) is None and not self._budget.was_hit
            self._known.remember(form, known)
        return known

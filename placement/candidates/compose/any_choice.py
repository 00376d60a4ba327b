"""Rules out trees without a provider for each group of a planner request, before their details are read.

Every proposal of the planner contains a choice of the plain search: one provider for each group, with the same traits,
isolation and same_subtrees. So a host without any choice has no proposal, nor has any other of the same canonical form.
If it does not matter where the providers are, a kind by room will do instead of the form.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import inf

from placement.candidates.budget import RequestBudget
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.useful_room import useful_room
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan, plan_for
from placement.domain.tree import Tree

STEPS_OF_A_TREE = 1_000
STEPS = 200_000
"""The most steps for one request. Trees that are not ruled out by then are composed."""

ParentsIn = Callable[[AbstractSet[int]], Mapping[int, int | None]]
"""Reads the parents of all providers of the trees with some roots."""


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
        is_placed = request.same_subtree or plan.trait_sets or not plan.request.combines_nested
        self._form_of = self._sketched if is_placed else _RoomKinds(plan).kind
        self._known: dict[Hashable, bool] = {}

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
        form = self._form_of(tree)
        known = self._known.get(form)
        if known is None:
            self._budget.was_hit = False
            known = next(self._composer.searched(tree), None) is None and not self._budget.was_hit
            self._known[form] = known
        return known

    def _sketched(self, tree: Tree) -> Hashable:
        """Return the canonical form of a tree: it matters which provider is where, or has which traits."""
        form, _providers = self._composer.sketcher.sketch(tree)
        return form


class _RoomKinds:
    """Classifies hosts by what is known about them without their details.

    Where only the room of single providers decides, hosts of one kind can all serve the same, whatever the counts.

    Args:
        plan: what is asked for.
    """

    def __init__(self, plan: Plan) -> None:
        self._contended = plan.contended
        self._useful = useful_room(plan)

    def kind(self, tree: Tree) -> Hashable:
        """Return the kind of a host: for each provider what it can serve and its useful room, sorted."""
        room, useful, names = tree.room, self._useful, self._contended
        can = [
            (of, *[useful[name][room.get((provider, name), inf)] for name in names])
            for provider, of in _demands_served(tree).items()
        ]
        return tuple(sorted(can))


def _demands_served(tree: Tree) -> dict[int, int]:
    """Return the demands that each provider can serve, as bits."""
    serves: dict[int, int] = defaultdict(int)
    for demand, row in enumerate(tree.options):
        for provider in row:
            serves[provider] |= 1 << demand
    return serves

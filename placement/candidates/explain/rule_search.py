"""In which trees a planner request has a candidate: the question that an explanation asks again and again.

Each kind of tree is asked once: hosts of a cloud are much alike.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.host_kinds import KindOf
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree
from placement.domain.tree import Tree

ComposerFor = Callable[[PlannerRequest], ProposalComposer]


class ServingTrees(NamedTuple):
    """The roots of trees that have a candidate, and of those that the steps did not suffice for."""

    trees: AbstractSet[int]
    undecided: AbstractSet[int] = frozenset()

    @property
    def possible(self) -> AbstractSet[int]:
        """All trees that are not known to have no candidate."""
        return self.trees | self.undecided


class _Alike(NamedTuple):
    """Trees of which each has a candidate exactly if one of them has, and that one."""

    roots: set[int]
    tree: Tree
    details: PlannerTree


class RuleSearch:
    """Trees with all their details, which requests are tried in.

    Args:
        kind: tells kinds of trees, of which all can serve a request or none can.
        trees: the trees, with the options of the demands that all requests have in common.
        composer_for: makes what composes a request.
        budget: the steps of all searches together.
    """

    def __init__(
        self, kind: KindOf, trees: Iterable[tuple[Tree, PlannerTree]], composer_for: ComposerFor, budget: Budget
    ) -> None:
        kinds: dict[object, _Alike] = {}
        for tree, details in trees:
            kinds.setdefault(kind(tree, details), _Alike(set(), tree, details)).roots.add(tree.root)
        self._kinds = list(kinds.values())
        self._composer_for = composer_for
        self._budget = budget
        self._known: list[tuple[PlannerRequest, ServingTrees]] = []

    @property
    def roots(self) -> AbstractSet[int]:
        """The roots of all trees."""
        return frozenset().union(*[kind.roots for kind in self._kinds])

    def serving(self, request: PlannerRequest) -> ServingTrees:
        """Return the trees that have a candidate for a request."""
        for known, found in self._known:
            if known == request:
                return found
        composer = self._composer_for(request)
        trees: set[int] = set()
        undecided: set[int] = set()
        for roots, tree, details in self._kinds:
            if composer.is_hopeless(tree):
                continue
            proposals = composer.proposals(tree, details, self._budget)
            if proposals.found:
                trees |= roots
            elif not proposals.complete:
                undecided |= roots
        self._known.append((request, ServingTrees(trees, undecided)))
        return self._known[-1][1]

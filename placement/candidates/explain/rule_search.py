"""In which trees a planner request has a candidate: the question that an explanation asks again and again.

Each kind of tree is asked once: hosts of a cloud are much alike. Where they are not, most questions are still answered
already: what has no candidate has none with a further rule, and what has one has one with a rule less.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.rules import asks_no_more
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


class _Served(NamedTuple):
    """The numbers of the kinds of trees that have a candidate, and of those that the steps did not suffice for."""

    kinds: set[int]
    undecided: set[int]


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
        self._known: list[tuple[PlannerRequest, _Served]] = []
        self._noted: list[tuple[PlannerRequest, _Served]] = []

    @property
    def roots(self) -> AbstractSet[int]:
        """The roots of all trees."""
        return self._roots(range(len(self._kinds)))

    def note(self, request: PlannerRequest, served: Mapping[int, bool]) -> None:
        """Take note of some trees, by their roots, whether they are known to have a candidate for a request."""
        found = _Served(set(), set())
        for number, kind in enumerate(self._kinds):
            verdict = next((served[root] for root in kind.roots if root in served), None)
            if verdict is not False:
                (found.kinds if verdict else found.undecided).add(number)
        self._noted.append((request, found))

    def serving(self, request: PlannerRequest) -> ServingTrees:
        """Return the trees that have a candidate for a request."""
        found = next((found for known, found in self._known if known == request), None)
        if found is None:
            found = self._searched(request)
            self._known.append((request, found))
        return ServingTrees(self._roots(found.kinds), self._roots(found.undecided))

    def _roots(self, kinds: Iterable[int]) -> AbstractSet[int]:
        return frozenset().union(*[self._kinds[number].roots for number in kinds])

    def _searched(self, request: PlannerRequest) -> "_Served":
        left = {*range(len(self._kinds))}
        found = _Served(set(), set())
        for known, of_known in (*self._noted, *self._known):
            if asks_no_more(known, request):
                left &= of_known.kinds | of_known.undecided
            if asks_no_more(request, known):
                found.kinds.update(of_known.kinds)
        composer = self._composer_for(request)
        for number in sorted(left - found.kinds):
            _roots, tree, details = self._kinds[number]
            if composer.is_hopeless(tree) or composer.lacks_room(tree):
                continue
            if self._budget.is_used_up:
                found.undecided.add(number)
                continue
            serves = composer.serves(tree, details, self._budget)
            if serves is not False:
                (found.kinds if serves else found.undecided).add(number)
        return found

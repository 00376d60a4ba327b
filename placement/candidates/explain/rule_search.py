"""Finds the trees in which a planner request has a candidate: what an explanation asks again and again.

Each kind of tree is searched once, because the hosts of a cloud are much alike. Where they are not, earlier answers
still settle most questions: a tree without a candidate has none under a further rule, and one with a candidate keeps it
under fewer rules. Trees are read only where neither sums nor places in use decide.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.candidates.compose.free_places import PlacesInUse
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.rules import asks_no_more
from placement.candidates.host_kinds import KindOf
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree
from placement.domain.tree import Tree

ComposerFor = Callable[[PlannerRequest], ProposalComposer]

_Serves = Callable[[], bool | None]
"""Tells whether a tree has any candidate; None if the budget runs out first."""


class ServingTrees(NamedTuple):
    """The roots of trees that have a candidate, and of those where the budget ran out before that was known."""

    trees: AbstractSet[int]
    undecided: AbstractSet[int] = frozenset()

    @property
    def possible(self) -> AbstractSet[int]:
        """All trees that are not known to have no candidate."""
        return self.trees | self.undecided


class SearchedHosts(NamedTuple):
    """The trees to search, and the means to learn more about them.

    Args:
        trees: the trees, with the options of the demands that all requests share.
        room_of: classifies trees by their options: all of a kind have the same room.
        kind: classifies trees by their outlines: all of a kind can serve a request, or none.
        outlines_of: reads the outlines of some of the trees.
        places_in_use: returns where anything is in use in any of them.
    """

    trees: Sequence[Tree]
    room_of: Callable[[Tree], Hashable]
    kind: KindOf
    outlines_of: Callable[[Sequence[Tree]], Sequence[PlannerTree]]
    places_in_use: Callable[[], PlacesInUse]


class RuleSearch:
    """Searches the same trees for requests that differ in their rules.

    Args:
        hosts: the trees.
        composer_for: returns the composer of a request.
        budget: the steps of all searches together.
    """

    def __init__(self, hosts: SearchedHosts, composer_for: ComposerFor, budget: Budget) -> None:
        self._hosts = hosts
        trees = {tree.root: tree for tree in hosts.trees}
        self._trees = trees
        kinds: dict[Hashable, int] = {}
        # Numbers compare faster than the kinds they stand for. Using ``self`` here would be a circle of references.
        self._room_of = cache(lambda root: kinds.setdefault(hosts.room_of(trees[root]), len(kinds)))
        self._composer_for = composer_for
        self._budget = budget
        self._known: list[tuple[PlannerRequest, ServingTrees]] = []
        self._noted: list[tuple[PlannerRequest, ServingTrees]] = []
        self.roots = frozenset(trees)
        """The roots of all trees."""

    def note(self, request: PlannerRequest, served: Mapping[int, bool]) -> None:
        """Note, by root, whether some trees are known to have a candidate for a request."""
        serving = {root for root, serves in served.items() if serves}
        self._noted.append((request, ServingTrees(self.roots & serving, self.roots - served.keys())))

    def serving(self, request: PlannerRequest) -> ServingTrees:
        """Return the trees that have a candidate for a request."""
        found = next((found for known, found in self._known if known == request), None)
        if found is None:
            found = self._searched(request)
            self._known.append((request, found))
        return found

    def is_served(self, request: PlannerRequest) -> bool:
        """Tell whether any tree is known to have a candidate for a request. Stops at the first one."""
        if any([found.trees and asks_no_more(request, known) for known, found in (*self._noted, *self._known)]):
            return True
        undecided: set[int] = set()
        for roots, verdict in self._verdicts(request, self._left(request)):
            if verdict:
                return True
            if verdict is None:
                undecided.update(roots)
        self._known.append((request, ServingTrees(frozenset(), undecided)))
        return False

    def _searched(self, request: PlannerRequest) -> ServingTrees:
        serving: set[int] = set()
        for known, of_known in (*self._noted, *self._known):
            if asks_no_more(request, known):
                serving |= of_known.trees
        undecided: set[int] = set()
        for roots, verdict in self._verdicts(request, self._left(request) - serving):
            if verdict is not False:
                (serving if verdict else undecided).update(roots)
        return ServingTrees(serving, undecided)

    def _left(self, request: PlannerRequest) -> AbstractSet[int]:
        """Return the trees that no earlier answer rules out for a request."""
        left = self.roots
        for known, of_known in (*self._noted, *self._known):
            if asks_no_more(known, request):
                left &= of_known.possible
        return left

    def _verdicts(self, request: PlannerRequest, left: AbstractSet[int]) -> Iterator[tuple[Iterable[int], bool | None]]:
        """Yield the roots of trees of one kind, and whether they serve; some that certainly do not are skipped."""
        for roots, serves in self._questions(request, left):
            yield roots, None if self._budget.is_used_up else serves()

    def _questions(self, request: PlannerRequest, left: AbstractSet[int]) -> Iterator[tuple[Iterable[int], _Serves]]:
        """Yield the roots of trees of one kind, and what tells whether they serve; skip those that certainly do not."""
        composer, roomy = self._composer_for(request), self._roomy(request)
        candidates: list[Tree] = []
        for alike in self._alike_in_room(left):
            one = alike[0]
            if not composer.is_hopeless(one) and (one.root in roomy or not composer.lacks_room(one)):
                candidates += alike
        if candidates:
            yield from self._questions_of_outlines(composer, candidates)

    def _roomy(self, request: PlannerRequest) -> AbstractSet[int]:
        """Return the trees known to have room for a request, because they serve another one for the same amounts."""
        amounts = request.groups, request.paths
        known = [of.trees for one, of in (*self._noted, *self._known) if (one.groups, one.paths) == amounts]
        return frozenset[int]().union(*known)

    def _alike_in_room(self, roots: AbstractSet[int]) -> Iterable[Sequence[Tree]]:
        """Return trees in lists of one kind by room, given their roots."""
        found: dict[Hashable, list[Tree]] = defaultdict(list)
        for root in sorted(roots):
            found[self._room_of(root)].append(self._trees[root])
        return found.values()

    def _questions_of_outlines(
        self, composer: ProposalComposer, trees: Sequence[Tree]
    ) -> Iterator[tuple[Iterable[int], _Serves]]:
        """Yield the same as ``_questions``, for trees that may have room."""
        wanted = composer.wanted_free
        if wanted:
            places = self._hosts.places_in_use()
            trees = [tree for tree in trees if not places.are_lacking(wanted, tree)]
        kinds: dict[Hashable, list[tuple[Tree, PlannerTree]]] = defaultdict(list)
        for tree, outline in zip(trees, self._hosts.outlines_of(trees), strict=True):
            kinds[self._hosts.kind(tree, outline)].append((tree, outline))
        for alike in kinds.values():
            yield [tree.root for tree, _outline in alike], partial(composer.serves, *alike[0], self._budget)

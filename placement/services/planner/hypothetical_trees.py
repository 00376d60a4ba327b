"""Candidates in hypothetical trees: each is modelled on an existing one, but empty, and names that tree's providers."""

from collections.abc import Iterator, Sequence

from placement.candidates.planner.planner_search import PlannedCandidate, search_for
from placement.cloud.view import MoreTrees
from placement.domain.overlay import Overlay
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import NamedMember
from placement.services.planner.changes import emptied
from placement.services.planner.composers import PlannerOptions
from placement.services.planner.questions import question_for
from placement.store.connection.unit_of_work import Transaction


class HypotheticalTrees:
    """Plans one request in hypothetical trees; all that are modelled on the same tree give the same candidates.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's options.
        overlay: assumed changes to existing trees, including those that share with the hypothetical ones.
    """

    def __init__(self, tx: Transaction, request: PlannerRequest, options: PlannerOptions, overlay: Overlay) -> None:
        self._tx = tx
        self._request = request
        self._options = options
        self._overlay = overlay
        self.members = dict[int, NamedMember]()
        """The providers of the trees that served as models."""
        self.complete = True
        """Whether no search hit its budget."""
        self.searched = 0
        """How many trees were searched."""

    def candidates(self, more: Sequence[MoreTrees]) -> list[PlannedCandidate]:
        """Return the best candidates in all of them, best first."""
        found = [one for addition in more for one in self._in_trees_like(addition)]
        return sorted(found, key=lambda one: one.rank)[: self._request.limit]

    def _in_trees_like(self, more: MoreTrees) -> Iterator[PlannedCandidate]:
        overlay = emptied(self._tx, [more.like], self._overlay)
        question = question_for(self._tx, self._request, self._options, overlay=overlay)
        search = search_for(question, overlay)
        found = list(search.proposals(only=more.like))
        self.searched += more.count
        self.complete &= search.complete
        self.members.update(search.members)
        for proposal in found:
            one = PlannedCandidate(proposal, search.score(proposal), more.like)
            yield from [one] * min(more.count, self._request.limit)

"""Candidates in hypothetical trees: each is modelled on an existing one, but empty, and names that tree's providers."""

from collections.abc import Iterator
from operator import attrgetter

from placement.candidates.planner.planner_search import PlannedCandidate, search_for
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.overlay import MoreTrees, Overlay
from placement.domain.planner_tree import NamedMember
from placement.services.planner.changes import emptied
from placement.store.connection.unit_of_work import Transaction


class HypotheticalTrees:
    """Plans one request in hypothetical trees; all that are modelled on the same tree give the same candidates.

    Args:
        tx: the transaction.
        question: the request in its snapshot.
        overlay: assumed changes to the cloud.
    """

    def __init__(self, tx: Transaction, question: PlannerQuestion, overlay: Overlay) -> None:
        self._tx = tx
        self._question = question
        self._overlay = overlay
        self.members = dict[int, NamedMember]()
        """The providers of the trees that served as models."""
        self.complete = True
        """Whether no search hit its budget."""
        self.searched = 0
        """How many trees were searched."""

    def candidates(self) -> list[PlannedCandidate]:
        """Return the best candidates in all of them, best first."""
        found = [candidate for more in self._overlay.more for candidate in self._in_trees_like(more)]
        return sorted(found, key=attrgetter("rank"))[: self._question.request.limit]

    def _in_trees_like(self, more: MoreTrees) -> Iterator[PlannedCandidate]:
        overlay = emptied(self._tx, [more.like], self._overlay)
        search = search_for(self._question, overlay)
        found = list(search.proposals(only=more.like))
        self.searched += more.count
        self.complete &= search.complete
        self.members.update(search.members)
        for proposal in found:
            one = PlannedCandidate(proposal, search.score(proposal), more.like)
            yield from [one] * min(more.count, self._question.request.limit)

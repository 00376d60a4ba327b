"""Candidates in trees that are not there: each is like one that is, but empty, and names the providers of that one."""

from collections.abc import Iterator, Sequence

from placement.candidates.headroom.what_if import MoreTrees
from placement.domain.overlay import Overlay
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.composers import PlannerOptions
from placement.services.planner.ground import Ground
from placement.services.planner.overlays import emptied
from placement.services.planner.planned_candidate import PlannedCandidate
from placement.services.planner.planning import Planning
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.tree_rows import NamedMember


class FurtherTrees:
    """One request planned in further trees; all trees like the same one give the same candidates.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's.
        overlay: what would differ in the trees that there are, and in those that share with them.
    """

    def __init__(self, tx: Transaction, request: PlannerRequest, options: PlannerOptions, overlay: Overlay) -> None:
        self._tx = tx
        self._request = request
        self._options = options
        self._overlay = overlay
        self.members = dict[int, NamedMember]()
        """The providers of the trees that they are like."""
        self.complete = True
        """Whether no search was cut off."""
        self.searched = 0
        """In how many trees something was looked for."""

    def candidates(self, more: Sequence[MoreTrees]) -> list[PlannedCandidate]:
        """Return the best candidates in all of them, the best first."""
        found = [one for addition in more for one in self._in_trees_like(addition)]
        return sorted(found, key=lambda one: one.rank)[: self._request.limit]

    def _in_trees_like(self, more: MoreTrees) -> Iterator[PlannedCandidate]:
        overlay = emptied(self._tx, [more.like], self._overlay)
        ground = Ground(self._tx, self._request, self._options, overlay=overlay)
        planning = Planning(ground, overlay)
        found = list(planning.proposals(only=more.like))
        self.searched += more.count
        self.complete &= planning.complete
        self.members.update(planning.members)
        for proposal in found:
            one = PlannedCandidate(proposal, planning.score(proposal), more.like)
            yield from [one] * min(more.count, self._request.limit)

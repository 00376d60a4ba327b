"""The places in a snapshot for members that want the same, best first, as members take from it.

The result is as if everything were planned again for each member. But in most clouds taking from one tree changes
nothing in the others: only that tree is composed in again, and all others keep their place in the line.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.planner_search import PlannerSearch, RankedKey, RankedProposal
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.ranking import ROOT
from placement.domain.tree import Overlay

FIRST_TREES = 8
"""How many trees to read in detail first, if a tree may serve several members."""


class MemberPlaces:
    """Goes down the line of all trees once. Trees that were taken from are ranked again, by what they are now.

    For a single member, and where taking from one tree matters to others, each member has a line of its own, without
    trees where an earlier one found nothing: members only take, so nothing will be found there later either. With
    ``isolate`` each takes another tree; ``checks_units`` drops places whose inventories disallow what is taken in all.
    """

    def __init__(
        self, question: PlannerQuestion, overlay: Overlay, *, members: int, checks_units: bool, isolate: bool = False
    ) -> None:
        self._question = question
        self._checks_units = checks_units
        self._exhausted: dict[int, bool] = {}
        """By root, the trees that are passed over in later lines, and whether there is proof that they serve nobody."""
        self._left_out: set[int] = set()
        self._changed: set[int] = set()
        """Trees that were taken from since the last call."""
        self._is_as_it_is = overlay.is_empty
        self._has_dropped = False
        self._has_begun = False
        self.has_one_line = members > 1 and question.is_tree_by_tree
        self._limit, self._first_trees = 1, FIRST_TREES
        if self.has_one_line:
            # If each member closes trees to others, more trees than members are visited: read them in one portion.
            self._limit, self._first_trees = (2 * members, members) if isolate else (members, FIRST_TREES)

    def _begin(self, overlay: Overlay) -> None:
        self._has_begun = True
        self.search = PlannerSearch(self._question, overlay, limit=self._limit, first_trees=self._first_trees)
        """The search behind the latest proposals."""
        self._line: Iterator[RankedProposal] = self.search.ranked()
        self._first_in_line: RankedProposal | None = None
        self._reranked: dict[int, tuple[RankedKey, Proposal | None]] = {}
        """By root, the trees ranked again: taken from, or only looked at. Without a proposal, a tree has yet to be
        composed in again, and its key is a bound.
        """
        self._reranked_keys: list[RankedKey] = []
        """A heap that also contains stale keys, which are skipped."""
        self._taken_from: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether there is definitely no more than was found."""
        return self.search.complete and all(self._exhausted.values())

    def max_members(self, members: int) -> int:
        """Return how many members may have places at most, the latest having found none, by a few sums; or all."""
        if not self.has_one_line or self._has_dropped or self._left_out or not self._is_as_it_is:
            return members
        open_trees = [root for root, is_proven in self.search.exhausted.items() if not is_proven]
        return self.search.most_in(self._taken_from | self._changed | {*open_trees}, members=members)

    def note(self, roots: Iterable[int]) -> None:
        """Note from which trees somebody took."""
        self._changed.update(roots)

    def leave_out(self, roots: Iterable[int]) -> None:
        """Leave out trees from now on."""
        self._left_out.update(roots)
        self._changed.update(roots)

    def best(self, overlay: Overlay, *, number: int) -> Sequence[Proposal]:
        """Return up to a number of the best proposals, given the previous overlay plus everything taken since."""
        if not self.has_one_line:
            passed_over = self._exhausted.keys() | self._left_out
            self._begin(overlay.avoiding(passed_over) if passed_over else overlay)
        else:
            if not self._has_begun:
                self._begin(overlay)
            self._rank_again(overlay)
        proposals: list[RankedProposal] = []
        while len(proposals) < number and (ranked := self._next()):
            proposals.append(ranked)
        for key, proposal in proposals:
            self._put_reranked(proposal.root, key, proposal)
        if not self.has_one_line:
            self._exhausted.update(self.search.exhausted)
        return [proposal for _key, proposal in proposals]

    def _rank_again(self, overlay: Overlay) -> None:
        """Rank the trees that were taken from, as far as possible without composing in them."""
        for root in sorted(self._changed):
            self._reranked.pop(root, None)
            if root not in self._left_out and (key := self.search.expected(root, overlay)):
                self._put_reranked(root, key, None)
        self._taken_from |= self._changed
        self._changed.clear()

    def _put_reranked(self, root: int, key: RankedKey, proposal: Proposal | None) -> None:
        self._reranked[root] = key, proposal
        heappush(self._reranked_keys, key)

    def _next(self) -> RankedProposal | None:
        """Remove and return the best proposal now."""
        while key := self._first_reranked():
            first = self._first()
            if first and first[0] < key:
                break
            _key, proposal = self._reranked.pop(key[ROOT])
            if proposal:
                return key, proposal
            ranked = self._allowed(self.search.again(key[ROOT]))
            if ranked:
                self._put_reranked(key[ROOT], *ranked)
        first, self._first_in_line = self._first(), None
        return first

    def _allowed(self, ranked: RankedProposal | None) -> RankedProposal | None:
        is_allowed = ranked and (not self._checks_units or self.search.allows(ranked[1]))
        self._has_dropped = self._has_dropped or bool(ranked and not is_allowed)
        return ranked if is_allowed else None

    def _first(self) -> RankedProposal | None:
        """Return the first proposal in the line whose tree has not been taken from."""
        while not self._first_in_line or self._first_in_line[1].root in self._taken_from:
            self._first_in_line = next(self._line, None)
            if not self._first_in_line:
                return None
            self._first_in_line = self._allowed(self._first_in_line)
        return self._first_in_line

    def _first_reranked(self) -> RankedKey | None:
        while self._reranked_keys:
            key = self._reranked_keys[0]
            if key[ROOT] in self._reranked and self._reranked[key[ROOT]][0] == key:
                return key
            heappop(self._reranked_keys)
        return None

"""The places of a snapshot for members that want the same, the best first, as members take of them.

What comes out is the same as if everything was planned anew for each member. That is seldom needed: in most clouds what
is taken of a tree changes nothing in another one. Then a tree that was taken from is composed in again, and all others
keep their place in the line.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Protocol

from placement.candidates.compose.proposals import Proposal
from placement.domain.overlay import Overlay
from placement.services.planner.alike_trees import AlikeTrees
from placement.services.planner.ground import Ground
from placement.services.planner.planning import Planning, RankedKey, RankedProposal

FIRST_TREES = 8
"""Of so many trees the details are read at first, where a tree may serve several members."""


class Lineup(Protocol):
    """What is there for members that want the same."""

    @property
    def planning(self) -> Planning:
        """What the proposals that came last were planned with."""

    @property
    def complete(self) -> bool:
        """Whether there certainly is no more than was found."""

    def best(self, overlay: Overlay, *, most: int) -> Sequence[Proposal]:
        """Return the best proposals in the cloud as it would be, at most so many.

        Args:
            overlay: the one before, with what was taken since.
            most: how many.
        """

    def note(self, taken: Proposal, roots: Iterable[int]) -> None:
        """Take note of what somebody took, and of which trees."""

    def leave_out(self, roots: Iterable[int]) -> None:
        """Leave out trees from now on."""


def lineup_for(ground: Ground, overlay: Overlay, *, members: int, apart: bool, checks_units: bool) -> Lineup:
    """Return what is there for members.

    Args:
        ground: what they want, in a snapshot; one candidate of each tree.
        overlay: what would differ before any of them has taken anything.
        members: how many they are, more or less.
        apart: whether no two of them may be in one tree.
        checks_units: whether places are left out where inventories do not allow in sum what is taken of them.
    """
    if members == 1 or not ground.is_tree_by_tree:
        return PlannedAnew(ground, checks_units=checks_units)
    # Where each closes trees to the others, more are gone through than there are members: they come in one portion.
    wanted, first = (2 * members, members) if apart else (members, FIRST_TREES)
    planning = Planning(ground, overlay, wanted=wanted, first_trees=first)
    return TreeByTree(planning, overlay, checks_units=checks_units)


class PlannedAnew:
    """Plans in the whole cloud each time, but for trees where nothing was found: members only take."""

    planning: Planning

    def __init__(self, ground: Ground, *, checks_units: bool) -> None:
        self._ground = ground
        self._checks_units = checks_units
        self._exhausted: dict[int, bool] = {}

    @property
    def complete(self) -> bool:
        """Whether there certainly is no more than was found."""
        return self.planning.complete and all(self._exhausted.values())

    def best(self, overlay: Overlay, *, most: int) -> Sequence[Proposal]:
        """Return the best proposals in the cloud as it would be, at most so many."""
        planning = self.planning = Planning(self._ground, overlay.avoiding(self._exhausted), wanted=1)
        proposals: Iterator[Proposal] = planning.proposals()
        if self._checks_units:
            proposals = filter(planning.allows, proposals)
        found = list(islice(proposals, most))
        self._exhausted.update(planning.exhausted)
        return found

    def note(self, taken: Proposal, roots: Iterable[int]) -> None:
        """Do nothing: the overlay has it."""

    def leave_out(self, roots: Iterable[int]) -> None:
        """Leave out trees from now on."""
        self._exhausted.update(dict.fromkeys(roots, True))


class TreeByTree:
    """Goes down the line of all trees once. Trees that were taken from stand beside it, where they belong by now.

    Args:
        planning: of one candidate in each tree, before anything is taken.
        overlay: what would differ before anything is taken.
        checks_units: whether places are left out where inventories do not allow in sum what is taken of them.
    """

    def __init__(self, planning: Planning, overlay: Overlay, *, checks_units: bool) -> None:
        self.planning = planning
        self._checks_units = checks_units
        self._line = planning.ranked()
        self._first_in_line: RankedProposal | None = None
        self._beside: dict[int, tuple[RankedKey, Proposal | None]] = {}
        """Trees that were taken from, or only looked at; those without a proposal have not been composed in again."""
        self._keys_beside: list[RankedKey] = []
        """A heap, with keys that trees had before and that do not count."""
        self._taken_from: set[int] = set()
        self._changed: set[int] = set()
        """Those that were taken from since the last time."""
        self._left_out: set[int] = set()
        self._alike = AlikeTrees(planning, overlay)

    @property
    def complete(self) -> bool:
        """Whether there certainly is no more than was found."""
        return self.planning.complete

    def note(self, taken: Proposal, roots: Iterable[int]) -> None:
        """Take note of what somebody took, and of which trees."""
        for root in roots:
            _key, own = self._beside.get(root, (None, None))
            self._alike.note(root, is_own=own is taken)
            self._changed.add(root)

    def leave_out(self, roots: Iterable[int]) -> None:
        """Leave out trees from now on."""
        self._left_out.update(roots)
        self._changed.update(roots)

    def best(self, overlay: Overlay, *, most: int) -> Sequence[Proposal]:
        """Return the best proposals in the cloud as it would be, at most so many."""
        for root in sorted(self._changed):
            self._beside.pop(root, None)
            if root not in self._left_out:
                self._stand_beside(root, overlay)
        self._taken_from |= self._changed
        self._changed.clear()
        found: list[RankedProposal] = []
        while len(found) < most and (ranked := self._next()):
            found.append(ranked)
        for key, proposal in found:
            self._put_beside(proposal.root, key, proposal)
        return [proposal for _key, proposal in found]

    def _stand_beside(self, root: int, overlay: Overlay) -> None:
        """Put a tree that was taken from where it belongs by now, as far as that is known without composing in it."""
        if self._alike.knows(root):
            if ranked := self._alike.next_of(root):
                self._put_beside(root, *ranked)
        elif key := self.planning.expected(root, overlay):
            self._put_beside(root, key, None)

    def _put_beside(self, root: int, key: RankedKey, proposal: Proposal | None) -> None:
        self._beside[root] = key, proposal
        heappush(self._keys_beside, key)

    def _next(self) -> RankedProposal | None:
        """Take out the best that there is now."""
        while key := self._first_beside():
            first = self._first()
            if first and first[0] < key:
                break
            _key, proposal = self._beside.pop(key[2])
            if proposal:
                return key, proposal
            ranked = self._allowed(self.planning.again(key[2]))
            self._alike.learn(key[2], ranked)
            if ranked:
                self._put_beside(key[2], *ranked)
        first, self._first_in_line = self._first(), None
        return first

    def _allowed(self, ranked: RankedProposal | None) -> RankedProposal | None:
        is_allowed = ranked and (not self._checks_units or self.planning.allows(ranked[1]))
        return ranked if is_allowed else None

    def _first(self) -> RankedProposal | None:
        """Return the first in the line of all trees that has not been taken from."""
        while not self._first_in_line or self._first_in_line[1].root in self._taken_from:
            self._first_in_line = next(self._line, None)
            if not self._first_in_line:
                return None
            self._first_in_line = self._allowed(self._first_in_line)
        return self._first_in_line

    def _first_beside(self) -> RankedKey | None:
        while self._keys_beside:
            key = self._keys_beside[0]
            if key[2] in self._beside and self._beside[key[2]][0] == key:
                return key
            heappop(self._keys_beside)
        return None

"""Stops a planning from reading tree after tree in vain: the next ones are ruled out in growing numbers.

Reading a tree in detail and composing in it costs much. Where a request fails by its rules, outlines show that for
far less (``serving_kinds``). But judging trees that would never have been read is a waste, too, so it starts only after
some failures, and stops if it rules out nothing.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from placement.domain.tree import Tree
from placement.services.planner.reading_ahead import MAX_BATCH, ReadingAhead
from placement.services.planner.serving_kinds import ServingKinds

TREES_IN_VAIN = 16
"""How many trees have to serve nothing before any are judged: up to then, the next one is as likely to serve."""

JUDGED_FOR_EACH = 4
"""How many trees to judge for each that served nothing, so that little is judged for nothing if one does serve."""

FRUITLESS_ROUNDS = 2
"""After this many rounds that ruled out nothing, no more trees are judged.

After one such round, more trees have to serve nothing before the next.
"""


class JudgingAhead:
    """Judges the trees that a planning is about to read in detail.

    Args:
        kinds: judges them; None if nothing can.
        ahead: knows which come next.
    """

    def __init__(self, kinds: ServingKinds | None, ahead: ReadingAhead) -> None:
        self._kinds = kinds
        self._ahead = ahead
        self._judged: set[int] = set()
        self._next_round_at = TREES_IN_VAIN
        self._fruitless = 0
        self.lacking: set[int] = set()
        """The roots of trees that provably serve nothing."""

    def judged(self, wanted: Sequence[Tree], *, in_vain: int) -> AbstractSet[int]:
        """Judge the trees wanted now and those likely to come next, if that pays; return the roots of those that lack.

        Args:
            wanted: the trees that are wanted now.
            in_vain: how many trees have served nothing, beyond what is to be expected.
        """
        trees = self._unjudged(wanted, JUDGED_FOR_EACH * in_vain) if self._is_due(in_vain) else []
        if self._kinds is None or len(trees) < MAX_BATCH:
            return frozenset()
        self._judged.update([tree.root for tree in trees])
        lacking = self._kinds.lacking_in(trees)
        if not lacking:
            self._fruitless += 1
            self._next_round_at = JUDGED_FOR_EACH * in_vain
        self._ahead.leave_out(lacking)
        self.lacking |= lacking
        return lacking

    def _is_due(self, in_vain: int) -> bool:
        return in_vain >= self._next_round_at and self._fruitless < FRUITLESS_ROUNDS

    def _unjudged(self, wanted: Sequence[Tree], most: int) -> list[Tree]:
        """Return the trees to judge now: none if those wanted were judged or read before."""
        unread = [tree for tree in wanted if tree.root not in self._judged and not self._ahead.has(tree)]
        return unread + self._ahead.upcoming(most, but=self._judged) if unread else []

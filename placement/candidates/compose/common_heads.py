"""A quick proof that a tree serves groups of a same_subtree: once its head is given, only room decides whoever serves.

In most hosts the first heads show a way. That costs far less than a search, which lays out all ways first.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.candidates.compose.common_places import HasRoom, WantedOfParts
from placement.candidates.compose.device_parts import Heads, Part

HEADS_OF_A_TREE = 8
"""So many heads are tried in a tree at most."""

TREES_IN_VAIN = 100
"""After so many trees in which no head that was tried would do, the search is asked at once."""

AncestryOf = Callable[[int], frozenset[int]]
"""Tells what is above a provider, itself included."""


class _HeadsInTree(NamedTuple):
    """A search in one tree: what is known of it, and how many more heads may be tried."""

    ancestry: AncestryOf
    has_room: HasRoom
    tries: Budget


class CommonHeads:
    """The same_subtrees of a request of which only room decides besides.

    Args:
        parts: the parts of the request.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._in_vain = Budget(TREES_IN_VAIN)

    def are_found(self, wanted: WantedOfParts, heads: Heads, *, ancestry: AncestryOf, has_room: HasRoom) -> bool:
        """Tell whether heads that were tried serve all parts. Where they do not, others may.

        Args:
            wanted: who can serve each part, below some head of each of its same_subtrees, and how many it wants.
            heads: these heads.
            ancestry: tells what is above a provider, itself included.
            has_room: tells whether each part has its providers, wherever they are.
        """
        if self._in_vain.is_used_up:
            return False
        found = self._are_found(wanted, heads, _HeadsInTree(ancestry, has_room, Budget(HEADS_OF_A_TREE)))
        if not found:
            self._in_vain.take()
        return found

    def _are_found(self, wanted: WantedOfParts, heads: Heads, search: _HeadsInTree) -> bool:
        if not heads:
            return True
        for below in self._below_one(wanted, heads[0], search.ancestry):
            if not search.tries.take():
                return False
            if search.has_room(below) and self._are_found(below, heads[1:], search):
                return True
        return False

    def _below_one(
        self, wanted: WantedOfParts, tie: tuple[frozenset[str], frozenset[int]], ancestry: AncestryOf
    ) -> Iterator[WantedOfParts]:
        """Yield for each head, and each part that may have it as its only provider, what is left of all parts then."""
        suffixes, heads = tie
        tied = [part.slot.suffix in suffixes for part in self._parts]
        for number, (row, count) in enumerate(wanted):
            for head in row if tied[number] and count == 1 else ():
                if head not in heads:
                    continue
                below = [
                    ([one for one in others if head in ancestry(one)], more) if is_tied else (others, more)
                    for is_tied, (others, more) in zip(tied, wanted, strict=True)
                ]
                below[number] = [head], 1
                if all([len(others) >= more for others, more in below]):
                    yield below

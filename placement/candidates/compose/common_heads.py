"""A quick proof that a tree serves the groups of a same_subtree: with its head fixed, all that matters is room.

In most hosts one of the first heads will do, and trying a few costs far less than asking the device allocator.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.candidates.compose.common_places import HasRoom, WantedOfParts
from placement.candidates.compose.device_parts import Heads, Part

HEADS_OF_A_TREE = 8
"""The most heads to try in a tree."""

TREES_IN_VAIN = 100
"""After this many trees where none of the heads tried would do, no more are tried: the device allocator decides."""

AncestryOf = Callable[[int], frozenset[int]]
"""Returns the ancestors of a provider, itself included."""


class _HeadsInTree(NamedTuple):
    """What heads are tried with in one tree, and how many more may be tried there."""

    ancestry: AncestryOf
    has_room: HasRoom
    tries: Budget


class CommonHeads:
    """The same_subtrees of a request that has no other rule but room.

    Args:
        parts: the parts of the request.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._in_vain = Budget(TREES_IN_VAIN)

    def are_found(self, wanted: WantedOfParts, heads: Heads, *, ancestry: AncestryOf, has_room: HasRoom) -> bool:
        """Tell whether some of the first heads serve all parts. If not, others still may.

        Args:
            wanted: the providers that can serve each part, all below some head of its same_subtrees; and how many it
                wants.
            heads: these heads.
            ancestry: returns the ancestors of a provider.
            has_room: tells whether each part gets its providers, wherever they are.
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
        """Fix each head in turn, as the only provider of each part it can serve; yield what all parts still want."""
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

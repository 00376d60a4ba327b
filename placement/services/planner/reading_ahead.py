"""Builds trees in detail in batches: those that are wanted now with those likely to be wanted next."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count, islice

from placement.candidates.frontier import Key, Keyed
from placement.candidates.planner_trees import TreesInDetail
from placement.domain.tree import Tree

MAX_BATCH = 64
"""The most trees built together: few enough to waste little."""


class ReadingAhead:
    """Reads trees in batches with those likely to be wanted next.

    Args:
        details: reads them.
        wanted: roughly how many trees will be wanted.
        first: how many to read ahead at first. Then twice as many each time, but no more than are still wanted; and
            once all of these are read, no more than ``MAX_BATCH``.
    """

    def __init__(self, details: TreesInDetail, *, wanted: int, first: int) -> None:
        self._details = details
        self._next: list[tuple[Key, int, Tree]] = []
        """A heap, in which a tree is also left under the keys that it had before."""
        self._keys: dict[int, Key] = {}
        """The key of each tree, by root."""
        self._numbers = count()
        self._left = wanted
        self._size = first

    def note(self, trees: Iterable[Keyed]) -> None:
        """Note trees that may be wanted, with their keys; or that their keys have changed."""
        for key, tree in trees:
            self._keys[tree.root] = key
            heappush(self._next, (key, next(self._numbers), tree))

    def read(self, trees: Sequence[Tree]) -> None:
        """Read trees that are wanted now, and the next ones."""
        if all(map(self._details.has, trees)):
            return
        more = [*islice(self._unread(), self._size)]
        self._details.of([*trees, *more])
        self._left -= len(more)
        self._size = min(2 * self._size, self._left if self._left > 0 else MAX_BATCH, MAX_BATCH)

    def _unread(self) -> Iterator[Tree]:
        while self._next:
            noted = heappop(self._next)
            if self._is_current(noted) and not self._details.has(noted[2]):
                yield noted[2]

    def _is_current(self, noted: tuple[Key, int, Tree]) -> bool:
        key, _number, tree = noted
        return self._keys.get(tree.root) == key

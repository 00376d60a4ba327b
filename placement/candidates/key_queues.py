"""The keys of trees before they are composed, to be taken the best first: as they come, or in an order that is kept."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop
from typing import Protocol

from placement.candidates.frontier import Key

FAILING = (True,)
"""A key before those of all trees that break a proportion, and behind all others."""


class KeyQueue(Protocol):
    """Keys of trees, the best first."""

    def __len__(self) -> int:
        """Return how many are left."""

    def __iter__(self) -> Iterator[Key]:
        """Yield those that are left, in any order."""

    @property
    def first(self) -> Key:
        """The best that is left."""

    def taken(self, count: int) -> Collection[Key]:
        """Take the best away, so many of them, and return them."""

    def without_failing(self) -> set[int]:
        """Take those away that break a proportion, and return their roots."""


class UnsortedKeys:
    """Keys as they come. Few of them will be taken, so they are not sorted."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._heap = list(keys)
        heapify(self._heap)

    def __len__(self) -> int:
        """Return how many are left."""
        return len(self._heap)

    def __iter__(self) -> Iterator[Key]:
        """Yield those that are left, in any order."""
        return iter(self._heap)

    @property
    def first(self) -> Key:
        """The best that is left."""
        return self._heap[0]

    def taken(self, count: int) -> list[Key]:
        """Take the best away, so many of them, and return them."""
        return [heappop(self._heap) for _ in range(count)]

    def without_failing(self) -> set[int]:
        """Take those away that break a proportion, and return their roots."""
        failing = {root for fails, _below, root in self._heap if fails}
        self._heap = [key for key in self._heap if not key[0]]
        heapify(self._heap)
        return failing


class SortedKeys:
    """Keys in an order that others go through as well; it is not changed."""

    def __init__(self, order: Sequence[Key]) -> None:
        self._order = order
        self._at, self._end = 0, len(order)

    def __len__(self) -> int:
        """Return how many are left."""
        return self._end - self._at

    def __iter__(self) -> Iterator[Key]:
        """Yield those that are left, in order."""
        return iter(self._order[self._at : self._end])

    @property
    def first(self) -> Key:
        """The best that is left."""
        return self._order[self._at]

    def taken(self, count: int) -> Sequence[Key]:
        """Take the best away, so many of them, and return them."""
        self._at += count
        return self._order[self._at - count : self._at]

    def without_failing(self) -> set[int]:
        """Take those away that break a proportion, and return their roots."""
        self._end = bisect_left(self._order, FAILING)
        return {key[2] for key in self._order[self._end :]}

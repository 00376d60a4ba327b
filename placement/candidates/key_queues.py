"""Queues of tree keys from before composing: a heap of one request's own, or a cursor into an order that is shared."""

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop
from typing import Protocol

from placement.candidates.frontier import FAILS, ROOT, Key
from placement.candidates.key_order import KeyOrder

FAILING = (True,)
"""Sorts before the keys of trees that break a proportion, and after all others."""


class KeyQueue(Protocol):
    """Keys of trees, taken best first."""

    def __len__(self) -> int:
        """Return how many keys are left."""

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys that are left, in any order."""

    @property
    def first(self) -> Key:
        """The best key left."""

    def taken(self, count: int) -> Collection[Key]:
        """Take away the best ``count`` keys, or all that are left, and return them in order."""

    def without_failing(self) -> set[int]:
        """Drop the keys that break a proportion, and return their roots."""

    def only(self, roots: AbstractSet[int]) -> set[int]:
        """Drop all keys but those of some roots, and return the roots of the others."""


class UnsortedKeys:
    """A heap of keys: only a few will be taken, so sorting them all would not pay."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._heap = list(keys)
        heapify(self._heap)

    def __len__(self) -> int:
        """Return how many keys are left."""
        return len(self._heap)

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys that are left, in any order."""
        return iter(self._heap)

    @property
    def first(self) -> Key:
        """The best key left."""
        return self._heap[0]

    def taken(self, count: int) -> list[Key]:
        """Take away the best ``count`` keys, or all that are left, and return them in order."""
        return [heappop(self._heap) for _ in range(min(count, len(self._heap)))]

    def without_failing(self) -> set[int]:
        """Drop the keys that break a proportion, and return their roots."""
        failing = {root for fails, _negated, root in self._heap if fails}
        self._heap = [key for key in self._heap if not key[FAILS]]
        heapify(self._heap)
        return failing

    def only(self, roots: AbstractSet[int]) -> set[int]:
        """Drop all keys but those of some roots, and return the roots of the others."""
        others = {key[ROOT] for key in self._heap}.difference(roots)
        self._heap = [key for key in self._heap if key[ROOT] in roots]
        heapify(self._heap)
        return others


class SortedKeys:
    """A cursor into an order of keys that others go through as well."""

    def __init__(self, order: KeyOrder) -> None:
        self._order = order
        self._at, self._end = 0, len(order)

    def __len__(self) -> int:
        """Return how many keys are left."""
        return self._end - self._at

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys that are left, in order."""
        return iter(self._order.between(self._at, self._end))

    @property
    def first(self) -> Key:
        """The best key left."""
        return self._order.between(self._at, self._at + 1)[0]

    def taken(self, count: int) -> list[Key]:
        """Take away the best ``count`` keys, or all that are left, and return them in order."""
        start, self._at = self._at, min(self._end, self._at + count)
        return self._order.between(start, self._at)

    def without_failing(self) -> set[int]:
        """Drop the keys that break a proportion, and return their roots."""
        end, self._end = self._end, self._order.count_below(FAILING)
        return {root for _fails, _negated, root in self._order.between(self._end, end)}

    def only(self, roots: AbstractSet[int]) -> set[int]:
        """Drop all keys but those of some roots, and return the roots of the others."""
        left = self._order.between(self._at, self._end)
        self._order = KeyOrder([key for key in left if key[ROOT] in roots])
        self._at, self._end = 0, len(self._order)
        return {key[ROOT] for key in left}.difference(roots)

"""The keys of all trees in order, sorted only as far as they are read, and a queue that takes them best first."""

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from placement.candidates.frontier import Key
from placement.cloud.providers import Flags, Floats, Ints

BLOCK = 512
"""How many keys to sort at first. Each later block is as large as all before it."""


class KeyColumns(NamedTuple):
    """Keys of trees: the parts of ``frontier.Key``, by root id in ascending order."""

    roots: Ints
    fails: Flags
    negated: Floats

    @classmethod
    def from_keys(cls, keys: Iterable[Key]) -> "KeyColumns":
        """Return the columns of some keys, no two of which have the same root."""
        by_root = sorted([(root, fails, negated) for fails, negated, root in keys])
        roots, fails, negated = zip(*by_root, strict=True) if by_root else ((), (), ())
        return cls(np.array(roots, dtype=np.int64), np.array(fails, dtype=bool), np.array(negated, dtype=np.float64))

    def with_changes(self, gone: AbstractSet[int], new: "KeyColumns") -> "KeyColumns":
        """Return the keys after changes.

        Args:
            gone: the roots that have no key any more.
            new: the keys that are new, or replace those of the same roots.
        """
        at = np.searchsorted(self.roots, new.roots)
        if not gone and np.array_equal(self.roots[at[at < len(self.roots)]], new.roots):
            fails, negated = self.fails.copy(), self.negated.copy()
            fails[at], negated[at] = new.fails, new.negated
            return KeyColumns(self.roots, fails, negated)
        is_left = ~np.isin(self.roots, np.append(new.roots, np.array([*gone], dtype=np.int64)))
        left = KeyColumns(self.roots[is_left], self.fails[is_left], self.negated[is_left])
        at = np.searchsorted(left.roots, new.roots)
        return KeyColumns(
            np.insert(left.roots, at, new.roots),
            np.insert(left.fails, at, new.fails),
            np.insert(left.negated, at, new.negated),
        )


class KeyOrder:
    """Keys in ascending order. What it says never changes, so threads share it.

    Args:
        keys: the keys.
        among: the indices of those that count, ascending; None for all.
    """

    __slots__ = ("_failing", "_length", "_state", "first_failing", "keys")

    def __init__(self, keys: KeyColumns, among: Ints | None = None) -> None:
        self.keys = keys
        indices = np.arange(len(keys.roots)) if among is None else among
        fails = keys.fails[indices]
        self._length = len(indices)
        self._failing = indices[fails]
        self.first_failing = len(indices) - len(self._failing)
        """The index of the first key that breaks a proportion: these come last."""
        self._state = indices[:0], indices[~fails]
        """The indices of the best keys in order, and of others that are not sorted yet, ascending."""

    @classmethod
    def from_keys(cls, keys: Iterable[Key]) -> "KeyOrder":
        """Return some keys in order, no two of which have the same root."""
        return cls(KeyColumns.from_keys(keys))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys in order."""
        return iter(self.between(0, len(self)))

    def between(self, start: int, end: int) -> list[Key]:
        """Return the keys from one index up to another, as a list's slice does."""
        at = self._in_order(end)[start:end]
        roots, fails, negated = (column[at].tolist() for column in self.keys)
        return [*zip(fails, negated, roots, strict=True)]

    def roots(self, start: int, end: int) -> list[int]:
        """Return the roots of these keys."""
        roots: list[int] = self.keys.roots[self._in_order(end)[start:end]].tolist()
        return roots

    def only(self, roots: Collection[int], *, between: tuple[int, int]) -> "KeyOrder":
        """Return the order of the keys of some roots, among those from one index up to another."""
        start, end = between
        at = np.sort(self._in_order(end)[start:end])
        wanted = np.fromiter(roots, dtype=np.int64, count=len(roots))
        return KeyOrder(self.keys, at[np.isin(self.keys.roots[at], wanted)])

    def _in_order(self, end: int) -> Ints:
        """Return the indices in the order of their keys, at least up to a place."""
        in_order, unsorted = self._state
        while len(in_order) < min(end, self._length):
            if len(unsorted):
                block, unsorted = self._split(unsorted, max(BLOCK, len(in_order)))
            else:
                block = self._failing
            # The indices ascend, and a stable sort leaves those with equal scores so.
            block = block[np.argsort(self.keys.negated[block], kind="stable")]
            in_order = np.concatenate((in_order, block))
            # One assignment: threads share it.
            self._state = in_order, unsorted
        return in_order

    def _split(self, unsorted: Ints, size: int) -> tuple[Ints, Ints]:
        """Return the best keys, at least ``size`` and all as good as any of these, and the others."""
        if size >= len(unsorted):
            return unsorted, unsorted[:0]
        negated = self.keys.negated[unsorted]
        is_best = negated <= np.partition(negated, size - 1)[size - 1]
        return unsorted[is_best], unsorted[~is_best]


class KeyQueue:
    """The keys of an order that one request has not taken yet, best first."""

    def __init__(self, order: KeyOrder) -> None:
        self._order = order
        self._at, self._end = 0, len(order)

    def __len__(self) -> int:
        return self._end - self._at

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys that are left, in order."""
        return iter(self._order.between(self._at, self._end))

    @property
    def first(self) -> Key:
        """The best key left."""
        return self._order.between(self._at, self._at + 1)[0]

    def roots(self) -> Iterator[int]:
        """Yield the roots of the keys that are left, in order; nothing is sorted before the first is asked for."""
        yield from self._order.roots(self._at, self._end)

    def taken(self, count: int) -> list[Key]:
        """Take away the best ``count`` keys, or all that are left, and return them in order."""
        start, self._at = self._at, min(self._end, self._at + count)
        return self._order.between(start, self._at)

    def without_failing(self) -> set[int]:
        """Drop the keys that break a proportion, and return their roots."""
        end, self._end = self._end, max(self._at, min(self._end, self._order.first_failing))
        return {*self._order.roots(self._end, end)}

    def only(self, roots: AbstractSet[int]) -> set[int]:
        """Drop all keys but those of some roots, and return the roots of the others."""
        dropped = {*self.roots()}.difference(roots)
        self._order = self._order.only(roots, between=(self._at, self._end))
        self._at, self._end = 0, len(self._order)
        return dropped

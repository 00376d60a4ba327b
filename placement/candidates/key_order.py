"""The keys of trees in order, sorted only as far as they are read, and a queue that takes them best first."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placement.candidates.frontier import LAST, Key
from placement.cloud.providers import Flags, Floats, Ints

BLOCK = 512
"""How many keys to sort at first. Each later block is as large as all before it."""


class KeyColumns(NamedTuple):
    """Keys of trees: the parts of ``frontier.Key``, by root id in ascending order."""

    roots: Ints
    fails: Flags
    negated: Floats

    def replaced(self, at: Ints, keys: "KeyColumns") -> "KeyColumns":
        """Return the keys with some replaced, given their indices."""
        fails, negated = self.fails.copy(), self.negated.copy()
        fails[at], negated[at] = keys.fails, keys.negated
        return KeyColumns(self.roots, fails, negated)


class KeyOrder:
    """Keys in ascending order. What it says never changes, so threads share it.

    Args:
        keys: the keys.
        among: the indices of those that count, ascending.
    """

    __slots__ = ("_failing", "_state", "among", "first_failing", "keys")

    def __init__(self, keys: KeyColumns, among: Ints) -> None:
        self.keys = keys
        self.among = among
        fails = keys.fails[among]
        self._failing = among[fails]
        self.first_failing = len(among) - len(self._failing)
        """The place of the first key that breaks a proportion: these come last."""
        self._state = among[:0], among[~fails]
        """The indices of the best keys in order, and of others that are not sorted yet, ascending."""

    def __len__(self) -> int:
        return len(self.among)

    def keys_at(self, at: Ints) -> list[Key]:
        """Return some keys by index."""
        roots, fails, negated = (column[at].tolist() for column in self.keys)
        return [*zip(fails, negated, roots, strict=True)]

    def indices(self, start: int, end: int) -> Ints:
        """Return the indices of the keys from one place in the order up to another, as a list's slice does."""
        in_order, unsorted = self._state
        while len(in_order) < min(end, len(self.among)):
            if len(unsorted):
                block, unsorted = self._split(unsorted, max(BLOCK, len(in_order)))
            else:
                block = self._failing
            # The indices ascend, and a stable sort leaves those with equal scores so.
            block = block[np.argsort(self.keys.negated[block], kind="stable")]
            in_order = np.concatenate((in_order, block))
            # One assignment: threads share it.
            self._state = in_order, unsorted
        return in_order[start:end]

    def _split(self, unsorted: Ints, size: int) -> tuple[Ints, Ints]:
        """Return the best keys, at least ``size`` and all as good as any of these, and the others."""
        if size >= len(unsorted):
            return unsorted, unsorted[:0]
        negated = self.keys.negated[unsorted]
        is_best = negated <= np.partition(negated, size - 1)[size - 1]
        return unsorted[is_best], unsorted[~is_best]


class KeyQueue:
    """The keys of an order that one request has not taken yet, best first.

    Args:
        order: the order.
        filters: whether to leave out keys that break a proportion.
    """

    def __init__(self, order: KeyOrder, *, filters: bool) -> None:
        self.order = order
        self._at, self._end = 0, order.first_failing if filters else len(order)

    def __len__(self) -> int:
        return self._end - self._at

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys that are left, in order."""
        return iter(self.order.keys_at(self.order.indices(self._at, self._end)))

    @property
    def first(self) -> Key:
        """The best key left; ``LAST`` if there is none."""
        return self.order.keys_at(self.order.indices(self._at, self._at + 1))[0] if len(self) else LAST

    def taken(self, count: int) -> Ints:
        """Take away the best ``count`` keys, or all that are left, and return their indices in order."""
        start, self._at = self._at, min(self._end, self._at + count)
        return self.order.indices(start, self._at)

    def left(self) -> Ints:
        """Return the indices of the keys that are left, in order."""
        return self.order.indices(self._at, self._end)

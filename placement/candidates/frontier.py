"""Which tree to compose next, and which result is final: best-first search over trees most of which are unread.

A tree's key, known before the tree is composed, is a lower bound on the keys of everything in it. So trees are read and
composed in key order, and a result is yielded as soon as nothing unread or uncomposed can precede it (a threshold
algorithm). Keys of all trees are columns, sorted only as far as they are read.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from placement.cloud.providers import Flags, Floats, Ints
from placement.domain.tree import Tree

Key = tuple[bool, float, int]
"""A tree's place in the order: whether it breaks a proportion, its negated score, its root. The least is best.

A plain tuple, because there are many thousands of them, and sorting compares them often. Unpacked, it is
``fails, negated, root``. Results have keys that begin likewise.
"""

FAILS: Final = 0
ROOT: Final = 2
"""The indices of a key's parts."""

LAST: Key = (True, inf, 0)
"""A key that comes after every tree's."""

Keyed = tuple[Key, Tree]


class Portion(NamedTuple):
    """Some trees with their keys from before composing; ``bound`` is a lower bound on those of all trees to come."""

    trees: list[Keyed]
    bound: Key


class Batches(NamedTuple):
    """How many trees to compose at a time: ``first`` to begin with, then twice as many, up to ``max_size``."""

    first: int
    max_size: int


ONE_BY_ONE = Batches(1, 1)
"""Composes no tree that is not needed."""

ALL_AT_ONCE = Batches(sys.maxsize, sys.maxsize)
"""For when everything is wanted: composing less at a time would save nothing."""

Ranked = TypeVar("Ranked", bound=tuple[Any, ...])
"""A composed result, led by its own key, which is no less than its tree's."""


def best_first(
    portions: Iterable[Portion], compose: Callable[[Sequence[Keyed]], Iterable[Ranked]], batches: Batches
) -> Iterator[Ranked]:
    """Yield the results composed in trees, best first, reading and composing no more trees than that takes.

    A tree is composed only once no unread tree can precede it, and a result is yielded only once no unread or
    uncomposed tree can.

    Args:
        portions: the trees, most promising first.
        compose: composes some trees. No two of its results have equal keys.
        batches: how many trees to compose at a time.
    """
    waiting: list[Keyed] = []
    composed: list[Ranked] = []
    size = batches.first
    for trees, bound in chain(portions, (Portion([], LAST),)):
        # Roots are unique, so comparing keys never reaches the trees.
        waiting = sorted(waiting + trees, reverse=True)
        while waiting and (expected := waiting[-1][0]) < bound:
            while composed and composed[0][0] < expected:
                yield heappop(composed)
            for result in compose(_taken(waiting, bound, size)):
                heappush(composed, result)
            size = min(2 * size, batches.max_size)
        if bound == LAST and not waiting:
            break
        while composed and composed[0][0] < bound:
            yield heappop(composed)
    yield from sorted(composed)  # Faster than popping one at a time.


def _taken(waiting: list[Keyed], bound: Key, max_size: int) -> list[Keyed]:
    """Pop up to ``max_size`` of the best trees off the end of a list, but none that an unread tree may precede."""
    if max_size == 1:
        return [waiting.pop()]
    taken: list[Keyed] = []
    while waiting and len(taken) < max_size and waiting[-1][0] < bound:
        taken.append(waiting.pop())
    return taken


BLOCK = 512
"""How many keys to sort at first. Each later block is as large as all before it."""


class KeyColumns(NamedTuple):
    """Keys of trees: the parts of ``Key``, by root id in ascending order."""

    roots: Ints
    fails: Flags
    negated: Floats

    def replaced(self, at: Ints, keys: "KeyColumns") -> "KeyColumns":
        """Return the keys with some replaced, given their indices."""
        fails, negated = self.fails.copy(), self.negated.copy()
        fails[at], negated[at] = keys.fails, keys.negated
        return KeyColumns(self.roots, fails, negated)


class KeyOrder:
    """Keys in ascending order. What it says never changes, so threads share it."""

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
    """The keys of an order that one request has not taken yet, best first."""

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

    def remaining(self) -> Ints:
        """Return the indices of the keys that are left, in order."""
        return self.order.indices(self._at, self._end)

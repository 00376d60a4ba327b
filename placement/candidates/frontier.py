"""Decides which tree to compose next and which result is final: best-first search over trees most of which are unread.

A tree's key, known before the tree is composed, is a lower bound on the keys of everything in it. So trees are read and
composed in key order, and a result is yielded as soon as nothing unread or uncomposed can precede it (a threshold
algorithm).
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Any, Final, NamedTuple, TypeVar

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
    """Some trees with their keys from before composing; ``rest`` is a lower bound on those of all trees to come."""

    trees: list[Keyed]
    rest: Key


class Batches(NamedTuple):
    """How many trees to compose at a time: ``first`` to begin with, then twice as many each time, up to ``most``."""

    first: int
    most: int


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
    for trees, rest in chain(portions, (Portion([], LAST),)):
        # Roots are unique, so comparing keys never reaches the trees.
        waiting = sorted(waiting + trees, reverse=True)
        while waiting and (expected := waiting[-1][0]) < rest:
            while composed and composed[0][0] < expected:
                yield heappop(composed)
            for result in compose(_taken(waiting, rest, size)):
                heappush(composed, result)
            size = min(2 * size, batches.most)
        if rest == LAST and not waiting:
            break
        while composed and composed[0][0] < rest:
            yield heappop(composed)
    yield from sorted(composed)  # Faster than popping one at a time.


def _taken(waiting: list[Keyed], rest: Key, most: int) -> list[Keyed]:
    """Pop up to ``most`` of the best trees off the end of a list, but none that an unread tree may precede."""
    if most == 1:
        return [waiting.pop()]
    taken: list[Keyed] = []
    while waiting and len(taken) < most and waiting[-1][0] < rest:
        taken.append(waiting.pop())
    return taken

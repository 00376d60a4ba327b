"""Which tree is composed next, and what is certain to come next: the best first, though most trees are still unread.

What a tree holds can be no better than its key, which is known before it is composed. So trees are read and composed
by their keys, and what was composed comes out as soon as nothing else can be better (a threshold algorithm).
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Any, NamedTuple, TypeVar

from placement.domain.tree import Tree

Key = tuple[bool, float, int]
"""The place of a tree in the order: whether it breaks a proportion, its negated score, its root."""

LAST: Key = (True, inf, 0)
"""A key behind that of every tree."""

Keyed = tuple[Key, Tree]


class Portion(NamedTuple):
    """Some trees with their keys as they are before they are composed, and a key that no tree to come is below."""

    trees: list[Keyed]
    rest: Key


class Batches(NamedTuple):
    """How many trees are composed together: so many at first, then twice as many each time, up to the most."""

    first: int
    most: int


ONE_BY_ONE = Batches(1, 1)
"""No tree is composed that is not needed."""

ALL_AT_ONCE = Batches(sys.maxsize, sys.maxsize)
"""Everything will be wanted, so nothing is gained by composing little."""

Ranked = TypeVar("Ranked", bound=tuple[Any, ...])
"""Something that was composed, led by its own key: that of its tree, or one behind it."""


def best_first(
    portions: Iterable[Portion], compose: Callable[[Sequence[Keyed]], Iterable[Ranked]], batches: Batches
) -> Iterator[Ranked]:
    """Yield what is composed in trees, the best first; read and compose no more of them than that takes.

    Args:
        portions: the trees, those first that may hold the best.
        compose: composes in some trees. No two keys of what it returns are equal.
        batches: how many trees it is given at a time.
    """
    waiting: list[Keyed] = []
    found: list[Ranked] = []
    size = batches.first
    for trees, rest in chain(portions, (Portion([], LAST),)):
        # Roots are all different, so keys alone are compared.
        waiting = sorted(waiting + trees, reverse=True)
        while waiting and (expected := waiting[-1][0]) < rest:
            while found and found[0][0] < expected:
                yield heappop(found)
            for one in compose(_taken(waiting, rest, size)):
                heappush(found, one)
            size = min(2 * size, batches.most)
        if rest == LAST and not waiting:
            break
        while found and found[0][0] < rest:
            yield heappop(found)
    yield from sorted(found)  # Faster than one by one.


def best_bounded_first(
    portions: Iterable[Portion],
    bound: Callable[[Keyed], Key],
    compose: Callable[[Sequence[Keyed]], Iterable[Ranked]],
) -> Iterator[Ranked]:
    """Yield the same, where the keys of trees say little and better ones cost less than composing.

    Args:
        portions: as above.
        bound: returns a key of a tree that is not below the one that it came with, nor above what is in it.
        compose: as above.
    """
    return best_first(_bounded(portions, bound), compose, ONE_BY_ONE)


def _bounded(portions: Iterable[Portion], bound: Callable[[Keyed], Key]) -> Iterator[Portion]:
    """Yield the trees one by one, by their better keys; and in between each key that no tree to come is below."""
    waiting: list[tuple[Key, bool, Tree]] = []  # A heap; roots are all different, so keys alone are compared.
    for trees, rest in chain(portions, (Portion([], LAST),)):
        for key, tree in trees:
            heappush(waiting, (key, False, tree))
        yield Portion([], min(waiting[0][0], rest) if waiting else rest)
        while waiting and waiting[0][0] < rest:
            key, is_bounded, tree = heappop(waiting)
            if not is_bounded:
                heappush(waiting, (bound((key, tree)), True, tree))
            yield Portion([(key, tree)] if is_bounded else [], min(waiting[0][0], rest) if waiting else rest)


def _taken(waiting: list[Keyed], rest: Key, most: int) -> list[Keyed]:
    """Take the best trees off a list that ends with them, as far as none to come is better."""
    if most == 1:
        return [waiting.pop()]
    taken: list[Keyed] = []
    while waiting and len(taken) < most and waiting[-1][0] < rest:
        taken.append(waiting.pop())
    return taken

"""Selects the fewest of many things that together are enough, and among those the least valuable.

If a single thing is enough, the least valuable such thing wins without a search. Otherwise small inputs are searched
exhaustively. For large ones, greedy answers in two orders (``taking``) are improved by exchanges with those things that
give most or are worth least. The result is proven optimal where it meets a lower bound derived from sums.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import NamedTuple

from placement.allocators.fair_share.all_choices import best_of_all
from placement.allocators.fair_share.basket import Basket, Cost, Kind
from placement.allocators.fair_share.exchanges import exchange
from placement.allocators.fair_share.taking import (
    BySize,
    Things,
    by_size,
    largest_first,
    least_valuable_first,
    may_go_alone,
)

MAX_EXACT = 400
"""The most things to search exhaustively, steps permitting."""

MAX_LISTED = 200
"""How many of the things that give most, and of those worth least, exchanges consider."""


MAX_SORTED = 4_000
"""How many of the things that give most are tried before all of them are."""


class Found(NamedTuple):
    """The indexes of the chosen things, None if there is no answer, and whether that is proven optimal."""

    numbers: tuple[int, ...] | None
    complete: bool


def fewest(things: Things, *, steps: int) -> Found:
    """Return the fewest things that are enough, among those the least valuable.

    Args:
        things: what to choose from.
        steps: the most partial choices an exhaustive search looks at.
    """
    alone = _alone(things)
    if alone is not None:
        return Found((alone,), complete=True)
    everything = range(len(things))
    if len(things) <= MAX_EXACT:
        alike = _alike(things, everything)
        best = _best(things, alike, [least_valuable_first(things), largest_first(things, everything)])
        counts, complete = best_of_all(_nothing(things, alike), best, steps=steps)
        return Found(None if counts is None else _numbers(alike, counts), complete)
    sizes = by_size(things, everything, things.needed)
    listed = _shortlist(sizes)
    cheap = least_valuable_first(things)
    large = next(filter(None, (largest_first(things, pool) for pool in _pools(listed, sizes))), None)
    alike = _alike(things, {*listed, *(cheap or ()), *(large or ())})
    best = _best(things, alike, [cheap, large])
    if best is None:
        return Found(None, complete=_least(things) is None)
    return Found(_numbers(alike, best.counts), complete=best.cost == _least(things))


def _alone(things: Things) -> int | None:
    """Return the least valuable thing that is enough on its own; None if there is none."""
    enough: Sequence[int] = range(len(things))
    for place, need in enumerate(things.needed):
        enough = [number for number in enough if things.gives[number][place] >= need]
    sorts = [
        (things.values[number], things.givers[number], things.takes[number], number)
        for number in enough
        if may_go_alone(things, number)
    ]
    return min(sorts, default=(None,))[-1]


def _least(things: Things) -> Cost | None:
    """Return a lower bound on the cost of any choice: count by the things that give most, value by the least valuable.

    None if all things that fit into their purses are not enough together.
    """
    sorts = list(zip(things.givers, things.takes, strict=True))
    first = {sort: number for number, sort in enumerate(sorts)}
    may_go = {sort: may_go_alone(things, number) for sort, number in first.items()}
    possible = [number for number, sort in enumerate(sorts) if may_go[sort]]
    count = 0
    for place, need in enumerate(things.needed):
        most = accumulate(sorted([things.gives[number][place] for number in possible], reverse=True))
        count = max(count, 1 + bisect_left(list(most), need))
    if count > len(possible):
        return None
    return count, sum(nsmallest(count, [things.values[number] for number in possible]))


def _best(things: Things, alike: Sequence[Sequence[int]], orders: Iterable[Sequence[int] | None]) -> Basket | None:
    """Return the best of several greedy answers after improving each by exchanges."""
    found = [_bettered(_nothing(things, alike), _counts(alike, taken)) for taken in orders if taken is not None]
    return min(found, key=attrgetter("cost"), default=None)


def _bettered(choice: Basket, counts: Iterable[int]) -> Basket:
    for number, count in enumerate(counts):
        choice.take(number, count)
    exchange(choice)
    return choice


def _nothing(things: Things, alike: Iterable[Sequence[int]]) -> Basket:
    return Basket([_kind(things, numbers) for numbers in alike], things.needed, things.purses)


def _numbers(alike: Iterable[Sequence[int]], counts: Iterable[int]) -> tuple[int, ...]:
    return tuple([number for count, numbers in zip(counts, alike, strict=True) for number in numbers[:count]])


def _pools(listed: Sequence[int], sizes: Sequence[BySize]) -> Iterator[Sequence[int]]:
    """Yield ever larger pools of the things that give most: the shortlist, a longer list, everything."""
    yield listed
    yield [entry[-1] for entry in nsmallest(MAX_SORTED, sizes)]
    yield [entry[-1] for entry in sizes]


def _shortlist(sizes: Sequence[BySize]) -> list[int]:
    """Return the things that give most, overall and of each giver, and those worth least."""
    largest = nsmallest(MAX_LISTED, sizes)
    cheapest = nsmallest(MAX_LISTED, sizes, key=itemgetter(1, 0))
    of_each: dict[int, BySize] = {}
    for entry in sizes:
        if entry[2] not in of_each or entry < of_each[entry[2]]:
            of_each[entry[2]] = entry
    firsts = nsmallest(MAX_LISTED, of_each.values())
    return sorted({entry[-1] for entry in [*largest, *cheapest, *firsts]})


def _alike(things: Things, numbers: Iterable[int]) -> list[list[int]]:
    """Group things that differ only in value, the least valuable first, in the order of their givers."""
    found = defaultdict[tuple[int, tuple[int, ...]], list[int]](list)
    for number in numbers:
        found[things.givers[number], things.takes[number]].append(number)
    for alike in found.values():
        alike.sort(key=things.values.__getitem__)
    return [alike for _sort, alike in sorted(found.items(), key=itemgetter(0))]


def _kind(things: Things, alike: Sequence[int]) -> Kind:
    first = alike[0]
    giver = things.of_giver[things.givers[first]]
    values = tuple([things.values[number] for number in alike])
    return Kind(things.gives[first], things.takes[first], values, giver.purses, giver.is_bound)


def _counts(alike: Sequence[Sequence[int]], found: Iterable[int]) -> list[int]:
    """Return how many of each kind were found."""
    chosen = set(found)
    return [len(chosen.intersection(numbers)) for numbers in alike]

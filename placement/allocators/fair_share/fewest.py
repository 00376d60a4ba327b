"""Selects the fewest of many things that together are enough, and among those the least valuable.

If a single thing is enough, the least valuable such thing wins without a search. Otherwise small inputs are searched
exhaustively. For large ones, greedy answers in two orders are improved by exchanges with those things that give most or
are worth least. The result is proven optimal where it meets a lower bound derived from sums.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, nsmallest
from itertools import accumulate
from operator import add, attrgetter, itemgetter
from typing import NamedTuple

from placement.allocators.fair_share.basket import Basket, Cost, Kind, Purse, best_of_all, exchange


class Giver(NamedTuple):
    """What all things that draw on the same purses have in common.

    Args:
        purses: the indexes of the purses.
        is_bound: whether the purses must have room for them. Unbound things use up their purses too, but only bound
            ones have to stay within them.
    """

    purses: tuple[int, ...] = ()
    is_bound: bool = True


@dataclass(frozen=True, slots=True)
class Things:
    """The things to choose from, column by column, and the needs they have to meet.

    Args:
        gives: how much each contributes to every need.
        takes: how much each takes out of its purses, by class.
        values: the value of each, in any unit.
        givers: the index of each one's giver. Ties go to the first giver.
        needed: the needs, all above 0.
        purses: the caps on what may be taken together.
        of_giver: the givers.
    """

    gives: Sequence[tuple[int, ...]]
    takes: Sequence[tuple[int, ...]]
    values: Sequence[int]
    givers: Sequence[int]
    needed: tuple[int, ...]
    purses: Sequence[Purse]
    of_giver: Sequence[Giver]

    def __len__(self) -> int:
        return len(self.values)


def may_go_alone(things: Things, number: int) -> bool:
    """Tell whether the purses of a thing have room for it when nothing else is taken."""
    giver, takes = things.of_giver[things.givers[number]], things.takes[number]
    return not giver.is_bound or not any(
        [
            taken > room
            for purse in giver.purses
            for taken, room in zip(takes, things.purses[purse], strict=True)
            if taken
        ]
    )


def least_valuable_first(things: Things) -> list[int] | None:
    """Take in ascending order of value and return what of it is needed; None if even everything is not enough."""
    taking = _Taking(things)
    queue = list(zip(things.values, things.givers, things.takes, range(len(things)), strict=True))
    heapify(queue)
    while queue and not taking.is_enough():
        taking.try_one(heappop(queue)[-1])
    return taking.result()


BySize = tuple[float, int, int, tuple[int, ...], int]
"""A sort key: how much a thing gives (negated), its value, its giver and what it takes; then its index."""


def largest_first(things: Things, numbers: Sequence[int]) -> list[int] | None:
    """Take the things that give most of the open needs first, ties by value; None as above."""
    taking = _Taking(things)
    while numbers and not taking.is_enough():
        open_needs = taking.open_needs()
        queue = by_size(things, numbers, taking.needed)
        heapify(queue)
        # A need that has been met no longer counts, so the rest have to be sorted anew.
        while queue and taking.open_needs() == open_needs:
            taking.try_one(heappop(queue)[-1])
        numbers = [entry[-1] for entry in queue]
    return taking.result()


def by_size(things: Things, numbers: Sequence[int], needed: Sequence[int]) -> list[BySize]:
    """Return the sort keys of these things by how much of the needs they meet."""
    sizes = [0.0] * len(numbers)
    for place, need in enumerate(needed):
        if need > 0:
            gives = [things.gives[number][place] for number in numbers]
            parts = [-amount / need if amount < need else -1.0 for amount in gives]
            sizes = list(map(add, sizes, parts))
    return [
        (size, things.values[number], things.givers[number], things.takes[number], number)
        for size, number in zip(sizes, numbers, strict=True)
    ]


class _Taking:
    """What has been taken so far, what is still needed, and how full the purses are."""

    def __init__(self, things: Things) -> None:
        self._things = things
        self.needed = list(things.needed)
        self._taken: list[int] = []
        self._spent = [[0] * len(purse) for purse in things.purses]
        self._bound = [[False] * len(purse) for purse in things.purses]

    def is_enough(self) -> bool:
        return max(self.needed, default=0) <= 0

    def open_needs(self) -> list[bool]:
        return [need > 0 for need in self.needed]

    def try_one(self, number: int) -> None:
        """Take a thing if it helps and its purses have room. Purses only fill up: what is refused never fits later."""
        gives, takes = self._things.gives[number], self._things.takes[number]
        giver = self._things.of_giver[self._things.givers[number]]
        if not any([need > 0 < amount for need, amount in zip(self.needed, gives, strict=True)]):
            return
        if not all([self._has_room(purse, takes, is_bound=giver.is_bound) for purse in giver.purses]):
            return
        self._taken.append(number)
        self.needed = [need - amount for need, amount in zip(self.needed, gives, strict=True)]
        for purse in giver.purses:
            spent, bound = self._spent[purse], self._bound[purse]
            for class_, amount in enumerate(takes):
                spent[class_] += amount
                bound[class_] |= amount > 0 and giver.is_bound

    def _has_room(self, purse: int, takes: Sequence[int], *, is_bound: bool) -> bool:
        state = zip(self._things.purses[purse], self._spent[purse], self._bound[purse], takes, strict=True)
        return not any(
            [amount and (is_bound or bound) and spent + amount > room for room, spent, bound, amount in state]
        )

    def result(self) -> list[int] | None:
        """Return what was taken, less whatever proves unnecessary, the most valuable of it first."""
        return sorted(self._kept()) if self.is_enough() else None

    def _kept(self) -> Iterator[int]:
        values = self._things.values
        for number in sorted(self._taken, key=lambda number: (-values[number], number)):
            without = [need + amount for need, amount in zip(self.needed, self._things.gives[number], strict=True)]
            if max(without) <= 0:
                self.needed = without
            else:
                yield number


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

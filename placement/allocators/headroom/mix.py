"""How many copies of a mix of requests fit, given what each place can serve of each of them at a time.

Of n copies in all each request has its share, cut off. Places are gone through one after the other, with all sums that
may still become the best: that is exact while they are few. Where they are many only the most promising are kept, and
what comes out is a lower bound. The upper bound puts a price on a copy of each request: all places together are worth
no more than each is at its best by these prices (Lagrange's relaxation); the prices are moved until that is little.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import nlargest
from typing import NamedTuple

from placement.allocators.headroom.copies import ENDLESS, Copies, exactly
from placement.allocators.headroom.joint import CopyCounts, parts_of

STEPS = 100_000
"""How many sums may be looked at."""

MOST_SUMS = 1_000
"""So many sums are kept after a place."""

FEWEST_ROUNDS, ROUNDS = 8, 24
"""How often prices are moved, as steps allow."""

SCALE = 1 << 20
"""Prices are whole numbers, so that bounds are exact."""


class MixedRoom(NamedTuple):
    """What a place can serve at a time, and how many such places there are.

    Args:
        sure: numbers of copies of each request that fit together; fewer always do.
        most: numbers of which what fits together exceeds at most all but one; the same where it is known exactly.
        places: how many.
    """

    sure: Sequence[CopyCounts]
    most: Sequence[CopyCounts]
    places: int = 1


def copies_of_mix(shares: Sequence[Fraction], rooms: Sequence[MixedRoom], most: int) -> Copies:
    """Return how many copies of a mix fit into places, all requests together.

    Args:
        shares: how large a part of all copies each request has; they add up to 1.
        rooms: the places.
        most: what is known to bound them.

    >>> halves, room = [Fraction(1, 2), Fraction(1, 2)], [(4, 0), (2, 1), (0, 2)]
    >>> copies_of_mix(halves, [MixedRoom(room, room, places=3)], ENDLESS)
    Copies(least=9, most=9)
    """
    places: dict[tuple[tuple[CopyCounts, ...], tuple[CopyCounts, ...]], int] = {}
    for room in rooms:
        known = tuple(room.sure), tuple(room.most)
        places[known] = places.get(known, 0) + room.places
    rooms = [MixedRoom(*known, number) for known, number in places.items()]
    priced = _Priced(shares, rooms, most)
    least = _summed(priced, rooms, width=1, above=-1).copies
    if least >= priced.bound:
        return exactly(priced.bound)
    sums = sum([room.places * len(room.sure) for room in rooms])
    found = _summed(priced, rooms, width=min(MOST_SUMS, STEPS // max(1, sums)), above=least)
    least = max(least, found.copies)
    is_exact = found.has_all and all([room.sure == room.most for room in rooms])
    return Copies(least, least if is_exact else priced.bound)


def most_in_all(copies: int, share: Fraction) -> int:
    """Return the largest number of which a share, cut off, is no more than so many copies."""
    return min(ENDLESS, math.ceil((copies + 1) / share) - 1)


class _Priced:
    """Prices for copies of each request, the bound that they give, and what each place would serve by them.

    Args:
        shares: of the requests.
        rooms: the places.
        most: what is known to bound copies.
    """

    def __init__(self, shares: Sequence[Fraction], rooms: Sequence[MixedRoom], most: int) -> None:
        self.shares = shares
        self.bound = most
        self.prices: CopyCounts = (1,) * len(shares)
        self.rounds = max(FEWEST_ROUNDS, min(ROUNDS, STEPS // sum([1, *[len(room.most) for room in rooms]])))
        self.served = [(0,) * len(shares)] * len(rooms)
        """What a place of each kind serves in the second half of the rounds, added up: on average that is balanced."""
        self._move(rooms)

    def _move(self, rooms: Sequence[MixedRoom]) -> None:
        weights = [1 / float(share) for share in self.shares]
        for number in range(2 * self.rounds):
            prices = tuple([1 + int(SCALE * weight / max(weights)) for weight in weights])
            best = [_best(prices, room.most) for room in rooms]
            taken = [
                sum([room.places * of[index] for room, of in zip(rooms, best, strict=True)])
                for index in range(len(prices))
            ]
            bound = self._bound(prices, taken)
            if bound < self.bound or not number:
                self.bound, self.prices = min(bound, self.bound), prices
            if number >= self.rounds:
                sure = [
                    of if room.sure == room.most else _best(prices, room.sure)
                    for room, of in zip(rooms, best, strict=True)
                ]
                self.served = [tuple(map(int.__add__, *both)) for both in zip(self.served, sure, strict=True)]
            ends = [1 + most_in_all(copies, share) for copies, share in zip(taken, self.shares, strict=True)]
            weights = [
                weight * (min(ends) / end) ** (1 / (2 + number)) for weight, end in zip(weights, ends, strict=True)
            ]

    def _bound(self, prices: CopyCounts, taken: Sequence[int]) -> int:
        """Return the bound by some prices, given what all places serve where they earn most."""

        def needed(copies: int) -> int:
            return _worth(prices, parts_of(copies, self.shares))

        return bisect_right(range(self.bound + 1), _worth(prices, taken), key=needed) - 1


def _best(prices: CopyCounts, among: Sequence[CopyCounts]) -> CopyCounts:
    return max(among, key=lambda counts: _worth(prices, counts))


def _worth(prices: CopyCounts, counts: Sequence[int]) -> int:
    return sum(map(int.__mul__, prices, counts))


class _BestSum(NamedTuple):
    """How many copies fit, and whether no sum was left out that might have been better."""

    copies: int
    has_all: bool


def _summed(priced: _Priced, rooms: Sequence[MixedRoom], *, width: int, above: int) -> _BestSum:
    """Return how many copies fit, if more than ``above``, with so many sums kept after each place."""
    shares, prices, caps = priced.shares, priced.prices, parts_of(priced.bound, priced.shares)
    wanted = _worth(prices, parts_of(above + 1, shares))
    sums, has_all = {(0,) * len(shares): None}, True
    for sure, served in _with_what_follows(priced, rooms):
        sums = _with_place(sums, sure, caps)
        lacking = wanted - served.worth
        sums = {one: None for one in sums if _worth(prices, one) >= lacking}
        if len(sums) > width:
            has_all = False
            ends = [([priced.rounds * copies for copies in one], one) for one in sums]
            expected = [(_copies([*map(int.__add__, end, served.counts)], shares), one) for end, one in ends]
            sums = {one: None for _expected, one in nlargest(width, expected)}
    return _BestSum(max([_copies(one, shares) for one in sums], default=-1), has_all)


class _AfterPlace(NamedTuple):
    """What all places that follow serve: what it is worth at most; ``rounds`` times what is to be expected."""

    worth: int
    counts: CopyCounts


def _with_what_follows(priced: _Priced, rooms: Sequence[MixedRoom]) -> list[tuple[Sequence[CopyCounts], _AfterPlace]]:
    """Return what each place serves for sure, with what follows."""
    worth, counts, found = 0, (0,) * len(priced.shares), []
    for room, served in reversed([*zip(rooms, priced.served, strict=True)]):
        best = max([_worth(priced.prices, one) for one in room.sure])
        for _place in range(room.places):
            found.append((room.sure, _AfterPlace(worth, counts)))
            worth, counts = worth + best, tuple(map(int.__add__, counts, served))
    return found[::-1]


def _with_place(sums: Iterable[CopyCounts], sure: Sequence[CopyCounts], caps: CopyCounts) -> dict[CopyCounts, None]:
    """Return the sums with what one more place serves; of those that differ in the last number alone, the largest."""
    found: dict[CopyCounts, int] = {}
    for one in sums:
        for counts in sure:
            *first, last = map(min, map(int.__add__, one, counts), caps)
            key = tuple(first)
            if found.get(key, -1) < last:
                found[key] = last
    return {(*first, last): None for first, last in found.items()}


def _copies(counts: Sequence[int], shares: Sequence[Fraction]) -> int:
    return min(map(most_in_all, counts, shares))

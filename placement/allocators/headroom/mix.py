"""How many copies of a mix of requests fit, given what each place can serve of each request at once.

Of n copies in total, each request has its share, rounded down. Dynamic programming over the places keeps all partial
sums that may still become the best, which is exact while they are few. Beyond that, a beam of the most promising ones
yields a lower bound. The upper bound is a Lagrangian relaxation: with a price on a copy of each request, all places
together are worth no more than each is at its best; the prices are adjusted until that is small.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import nlargest
from typing import NamedTuple

from placement.allocators.headroom.bundles import ENDLESS, Copies, exactly
from placement.allocators.headroom.joint import CopyCounts, parts_of

STEPS = 100_000
"""How many sums to look at."""

MAX_SUMS = 1_000
"""The width of the beam: how many sums to keep after each place."""

FEWEST_ROUNDS, ROUNDS = 8, 24
"""How often to adjust the prices, as steps permit."""

SMALLEST_SHARE = 1e-100
"""Prices treat smaller shares like this one, whose inverse is still a float."""

SCALE = 1 << 20
"""The scale of prices, which are integers so that bounds are exact."""


class MixedRoom(NamedTuple):
    """What a place can serve at once, and how many such places there are.

    Args:
        sure: copy counts that fit together, and with them all smaller ones.
        most: copy counts that dominate everything that fits; the same as ``sure`` where that is exact.
        places: the number of such places.
    """

    sure: Sequence[CopyCounts]
    most: Sequence[CopyCounts]
    places: int = 1


def copies_of_mix(shares: Sequence[Fraction], rooms: Sequence[MixedRoom], most: int) -> Copies:
    """Return how many copies of a mix fit into places, all requests together.

    Args:
        shares: each request's fraction of all copies; they add up to 1.
        rooms: the places.
        most: a known upper bound.

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
    found = _summed(priced, rooms, width=min(MAX_SUMS, STEPS // max(1, sums)), above=least)
    least = max(least, found.copies)
    is_exact = found.has_all and all([room.sure == room.most for room in rooms])
    return Copies(least, least if is_exact else priced.bound)


def most_in_all(copies: int, share: Fraction) -> int:
    """Return the largest total of which a request's share, rounded down, is no more than this many copies."""
    return min(ENDLESS, math.ceil((copies + 1) / share) - 1)


class _Priced:
    """Prices for copies of each request, the resulting bound, and what each place would serve at these prices.

    Args:
        shares: the shares of the requests.
        rooms: the places.
        most: a known upper bound.
    """

    def __init__(self, shares: Sequence[Fraction], rooms: Sequence[MixedRoom], most: int) -> None:
        self.shares = shares
        self.bound = most
        self.prices: CopyCounts = (1,) * len(shares)
        self.rounds = max(FEWEST_ROUNDS, min(ROUNDS, STEPS // sum([1, *[len(room.most) for room in rooms]])))
        self.served = [(0,) * len(shares)] * len(rooms)
        """What a place of each kind serves in the second half of the rounds, summed up; on average that is balanced."""
        self._move(rooms)

    def _move(self, rooms: Sequence[MixedRoom]) -> None:
        weights = [1 / max(float(share), SMALLEST_SHARE) for share in self.shares]
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
        """Return the bound that some prices give, when all places serve what earns most at them."""

        def needed(copies: int) -> int:
            return _worth(prices, parts_of(copies, self.shares))

        return bisect_right(range(self.bound + 1), _worth(prices, taken), key=needed) - 1


def _best(prices: CopyCounts, among: Sequence[CopyCounts]) -> CopyCounts:
    return max(among, key=lambda counts: _worth(prices, counts))


def _worth(prices: CopyCounts, counts: Sequence[int]) -> int:
    return sum(map(int.__mul__, prices, counts))


class _BestSum(NamedTuple):
    """The number of copies that fit, and whether no sum was dropped that might have been better."""

    copies: int
    has_all: bool


def _summed(priced: _Priced, rooms: Sequence[MixedRoom], *, width: int, above: int) -> _BestSum:
    """Run the beam search with this width, and return the number of copies that fit if it exceeds ``above``."""
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
    """What all later places serve: an upper bound on its worth, and ``rounds`` times the expected counts."""

    worth: int
    counts: CopyCounts


def _with_what_follows(priced: _Priced, rooms: Sequence[MixedRoom]) -> list[tuple[Sequence[CopyCounts], _AfterPlace]]:
    """Pair each place's sure counts with what the places after it serve."""
    worth, counts, found = 0, (0,) * len(priced.shares), []
    for room, served in reversed([*zip(rooms, priced.served, strict=True)]):
        best = max([_worth(priced.prices, one) for one in room.sure])
        for _place in range(room.places):
            found.append((room.sure, _AfterPlace(worth, counts)))
            worth, counts = worth + best, tuple(map(int.__add__, counts, served))
    return found[::-1]


def _with_place(sums: Iterable[CopyCounts], sure: Sequence[CopyCounts], caps: CopyCounts) -> dict[CopyCounts, None]:
    """Add one more place to the sums; among those that differ only in the last count, keep the largest."""
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

"""A choice of things, kind by kind, and how to improve it: by exchanges, or by looking at all choices.

Things that differ only in value form a *kind*; the least valuable of a kind are taken first.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate, combinations_with_replacement
from typing import NamedTuple

Purse = tuple[int, ...]
"""A joint cap, class by class, on what may be taken from the things that draw on it."""


class Kind(NamedTuple):
    """Things that differ only in value.

    Args:
        gives: how much each contributes to every need.
        takes: how much each takes out of its purses, by class.
        values: their values in any unit, in ascending order.
        purses: the indexes of the purses they draw on.
        is_bound: whether their purses must have room for them. Unbound things use up their purses too, but only bound
            ones have to stay within them.
    """

    gives: tuple[int, ...]
    takes: tuple[int, ...]
    values: tuple[int, ...]
    purses: tuple[int, ...] = ()
    is_bound: bool = True


Cost = tuple[int, int]
"""The sort key of a choice: the number of things, then their total value."""


class Basket:
    """A partial choice: how many of each kind are taken, and how much is still needed."""

    def __init__(self, kinds: Sequence[Kind], needed: Sequence[int], purses: Sequence[Purse]) -> None:
        self.kinds = kinds
        self.counts = [0] * len(kinds)
        self.needed = list(needed)
        self.cost: Cost = 0, 0
        self.purses = purses
        self._taken = [[0] * len(purse) for purse in purses]
        self._bound = [[0] * len(purse) for purse in purses]

    def is_enough(self) -> bool:
        """Tell whether every need is met."""
        return max(self.needed, default=0) <= 0

    def useful(self, number: int) -> int:
        """Return how many more of a kind would help and still fit into the purses."""
        kind = self.kinds[number]
        wanted = [-(-need // gives) for need, gives in zip(self.needed, kind.gives, strict=True) if need > 0 < gives]
        return self.room(number, min(max(wanted, default=0), len(kind.values) - self.counts[number]))

    def room(self, number: int, count: int) -> int:
        """Cap a count at what the purses have room for."""
        kind = self.kinds[number]
        for purse in kind.purses:
            state = zip(self.purses[purse], self._taken[purse], self._bound[purse], kind.takes, strict=True)
            for room, taken, bound, takes in state:
                if takes and (kind.is_bound or bound):
                    count = min(count, (room - taken) // takes)
        return max(count, 0)

    def take(self, number: int, count: int) -> None:
        """Take this many more of a kind; a negative count puts them back."""
        kind, before = self.kinds[number], self.counts[number]
        after = before + count
        worth = sum(kind.values[before:after]) if count > 0 else -sum(kind.values[after:before])
        self.cost = self.cost[0] + count, self.cost[1] + worth
        self.counts[number] = after
        self.needed = [need - count * gives for need, gives in zip(self.needed, kind.gives, strict=True)]
        for purse in kind.purses:
            taken, bound = self._taken[purse], self._bound[purse]
            for class_, takes in enumerate(kind.takes):
                taken[class_] += count * takes
                bound[class_] += count * (takes > 0 and kind.is_bound)

    def drop_unneeded(self) -> None:
        """Put back whatever is not needed, the most valuable first."""
        held = [(-self._dearest(number), number) for number, count in enumerate(self.counts) if count]
        heapify(held)
        while held:
            _value, number = heappop(held)
            self.take(number, -1)
            if not self.is_enough():
                self.take(number, 1)
            elif self.counts[number]:
                heappush(held, (-self._dearest(number), number))

    def _dearest(self, number: int) -> int:
        return self.kinds[number].values[self.counts[number] - 1]


MAX_LOOKS = 20_000
"""How many kinds to look at in one run."""


def exchange(basket: Basket) -> None:
    """Improve a choice: put back one or two things for a single other one, as long as that helps."""
    tries = MAX_LOOKS // len(basket.kinds)
    is_better = True
    while is_better and tries > 0:
        is_better = False
        for away in _to_put_back(basket):
            tries -= 1
            is_better = _exchanged(basket, away)
            if is_better or tries <= 0:
                break


def _to_put_back(basket: Basket) -> Iterator[tuple[int, ...]]:
    held = [number for number, count in enumerate(basket.counts) if count]
    yield from [(number,) for number in held]
    for number, other in combinations_with_replacement(held, 2):
        if other != number or basket.counts[number] > 1:
            yield number, other


def _exchanged(basket: Basket, away: Sequence[int]) -> bool:
    """Replace these by the best single thing that is enough; undo and return False if that is no better."""
    before = basket.cost
    for number in away:
        basket.take(number, -1)
    best = min(_single(basket), default=None)
    if best is not None:
        basket.take(best[1], 1)
        if basket.cost < before:
            basket.drop_unneeded()
            return True
        basket.take(best[1], -1)
    for number in away:
        basket.take(number, 1)
    return False


def _single(basket: Basket) -> Iterator[tuple[int, int]]:
    """Yield the kinds of which one thing would be enough, each with that thing's value."""
    needs = [(place, need) for place, need in enumerate(basket.needed) if need > 0]
    for number, kind in enumerate(basket.kinds):
        is_left = basket.counts[number] < len(kind.values)
        if is_left and all([need <= kind.gives[place] for place, need in needs]) and basket.useful(number):
            yield kind.values[basket.counts[number]], number


def best_of_all(nothing: Basket, best: Basket | None, *, steps: int) -> tuple[tuple[int, ...] | None, bool]:
    """Return how many of each kind the best choice takes, None if there is none, and whether it is proven optimal.

    Args:
        nothing: the empty choice; it is empty again afterwards.
        best: the best choice known so far.
        steps: the most partial choices to look at.
    """
    search = _Search(nothing, best, steps)
    search.extend(0)
    return search.best, search.steps > 0


class _Search:
    """A walk through all choices, kind by kind, that prunes those that cannot beat the best one found."""

    def __init__(self, basket: Basket, best: Basket | None, steps: int) -> None:
        self.best = None if best is None else tuple(best.counts)
        self.steps = steps
        self._cost = None if best is None else best.cost
        self._basket = basket
        kinds = basket.kinds
        self._order = sorted(range(len(kinds)), key=lambda number: tuple([-gives for gives in kinds[number].gives]))
        rests = [[kinds[number] for number in self._order[start:]] for start in range(len(kinds))]
        self._most = [[most_of(rest, need) for need in range(len(basket.needed))] for rest in rests]
        self._cheapest = [cheapest(rest) for rest in rests]

    def extend(self, start: int) -> None:
        """Try all ways to extend the present choice by kinds from this position on."""
        self.steps -= 1
        basket = self._basket
        if basket.is_enough():
            if self._cost is None or basket.cost < self._cost:
                self.best, self._cost = tuple(basket.counts), basket.cost
            return
        if start == len(self._order) or self.steps <= 0 or not self._may_succeed(start):
            return
        number = self._order[start]
        for more in range(basket.useful(number), -1, -1):
            basket.take(number, more)
            self.extend(start + 1)
            basket.take(number, -more)

    def _may_succeed(self, start: int) -> bool:
        """Tell whether the kinds from here on can meet the needs, at a cost that may beat the best."""
        least = 0
        for most, need in zip(self._most[start], self._basket.needed, strict=True):
            if need > most[-1]:
                return False
            least = max(least, bisect_left(most, need))
        count, value = self._basket.cost
        return self._cost is None or (count + least, value + self._cheapest[start][least]) < self._cost


def most_of(kinds: Iterable[Kind], need: int) -> list[int]:
    """Return the most that n things can give towards one need, for n from 0 up."""
    every = sorted([kind.gives[need] for kind in kinds for _value in kind.values], reverse=True)
    return [0, *accumulate(every)]


def cheapest(kinds: Iterable[Kind]) -> list[int]:
    """Return the least that n things can be worth, for n from 0 up."""
    every = sorted([value for kind in kinds for value in kind.values])
    return [0, *accumulate(every)]

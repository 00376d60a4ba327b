"""Exhaustive search for small problems: branch and bound over all choices that can beat the best one found."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from placement.allocators.fair_share.basket import Basket, Kind


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

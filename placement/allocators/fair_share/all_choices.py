"""The best choice of all, for small problems: every choice is looked at that can be better than the best one found."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from placement.allocators.fair_share.basket import Basket, Kind


def best_of_all(nothing: Basket, best: Basket | None, *, steps: int) -> tuple[tuple[int, ...] | None, bool]:
    """Return how many of each kind are the best choice, None if there is none, and whether that is certain.

    Args:
        nothing: the empty choice; it is left empty.
        best: the best choice that is known.
        steps: how many partial choices are looked at.
    """
    search = _Search(nothing, best, steps)
    search.extend(0)
    return search.best, search.steps > 0


class _Search:
    """All choices, kind by kind, without those that cannot be better than the best one found."""

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
        """Look at all choices that begin like this, with any of the kinds from a place on."""
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
        """Tell whether the kinds from here on can be enough, and with them a choice better than the best."""
        least = 0
        for most, need in zip(self._most[start], self._basket.needed, strict=True):
            if need > most[-1]:
                return False
            least = max(least, bisect_left(most, need))
        count, value = self._basket.cost
        return self._cost is None or (count + least, value + self._cheapest[start][least]) < self._cost


def most_of(kinds: Iterable[Kind], need: int) -> list[int]:
    """Return the most that so many things give of one need, for each number of things."""
    every = sorted([kind.gives[need] for kind in kinds for _value in kind.values], reverse=True)
    return [0, *accumulate(every)]


def cheapest(kinds: Iterable[Kind]) -> list[int]:
    """Return the least that so many things are worth, for each number of things."""
    every = sorted([value for kind in kinds for value in kind.values])
    return [0, *accumulate(every)]

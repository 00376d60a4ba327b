"""Finds the fewest things to give back so that something fits, where only an oracle can tell whether it does.

Taking more never makes it fit less. Needs expressed as sums filter first: a choice that misses them is never tried.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.fair_share.all_choices import cheapest, most_of
from placement.allocators.fair_share.basket import Basket, Cost

QUESTION = 50
"""The usual cost, in steps, of asking whether something fits."""

FittingChoice = tuple[Cost, tuple[int, ...]]
"""The cost of a choice, and how many of each kind it takes."""

Fits = Callable[[Sequence[int]], bool]
"""The oracle: whether it fits once this many of each kind are taken."""


class _Rest(NamedTuple):
    """Bounds by the number of things: the most of each need they can give, and the least they can be worth."""

    most: Sequence[Sequence[int]]
    cheapest: Sequence[int]


class FittingSearch:
    """A search among the things in one place.

    Args:
        nothing: the empty choice, with the kinds to choose from and the needs as sums. It is empty again afterwards.
        fits: the oracle.
        budget: one step per choice looked at.
        question: the steps that one call of ``fits`` counts for.
    """

    def __init__(self, nothing: Basket, fits: Fits, budget: Budget, *, question: int = QUESTION) -> None:
        self._basket = nothing
        self._fits = fits
        self._budget = budget
        self._question = question
        kinds = nothing.kinds
        self._order = sorted(range(len(kinds)), key=lambda number: (kinds[number].values[0], number))
        self._rests: dict[int, _Rest] = {}
        self._found: tuple[int, tuple[int, ...]] | None = None

    def _rest(self, start: int) -> "_Rest":
        """Return the bounds for the kinds from this position on."""
        if start not in self._rests:
            kinds = [self._basket.kinds[number] for number in self._order[start:]]
            most = [most_of(kinds, need) for need in range(len(self._basket.needed))]
            self._rests[start] = _Rest(most, cheapest(kinds))
        return self._rests[start]

    @property
    def bound(self) -> Cost | None:
        """A lower bound on the cost; None if, by the sums, even everything is not enough."""
        most, worth = self._rest(0)
        least = max([bisect_left(of, need) for of, need in zip(most, self._basket.needed, strict=True)], default=0)
        return (least, worth[least]) if least < len(worth) else None

    def best(self, below: Cost | None) -> FittingChoice | None:
        """Return the fewest things, among those the least valuable; a greedy answer by value if the budget runs out.

        Args:
            below: an upper bound; only cheaper choices count.
        """
        if self.bound is None or not self._asked([len(kind.values) for kind in self._basket.kinds]):
            return None
        best = self._in_order()
        if best is not None and below is not None and best[0] >= below:
            best = None
        return self.least(best[0] if best else below) or best

    def least(self, below: Cost | None) -> FittingChoice | None:
        """Return the same without a greedy answer to fall back on: None if the budget runs out."""
        if self.bound is None:
            return None
        worth = self._rest(0).cheapest
        for count in range(self.bound[0], len(worth)):
            if (below is not None and (count, worth[count]) >= below) or not self._budget.take():
                break
            self._found = (below[1], ()) if below is not None and count == below[0] else None
            self._extend(0, count)
            if self._found is not None and self._found[1]:
                return (count, self._found[0]), self._found[1]
        return None

    def _asked(self, counts: Sequence[int]) -> bool:
        return self._budget.take(self._question) and self._fits(counts)

    def _in_order(self) -> FittingChoice | None:
        """Take in ascending order of value until it fits, then put back what is not needed, the most valuable first."""
        taken = self._affordable()
        if not self._is_enough(taken):
            return self._emptied(None)
        # More never fits less, so bisection finds the shortest prefix that is enough.
        number = 1 + bisect_left(range(1, len(taken)), 1, key=lambda length: self._is_enough(taken[:length]))
        self._take(taken[:number])
        for one in reversed(taken[:number]):
            self._basket.take(one, -1)
            if not (self._basket.is_enough() and self._asked(self._basket.counts)):
                self._basket.take(one, 1)
        return self._emptied((self._basket.cost, tuple(self._basket.counts)))

    def _affordable(self) -> list[int]:
        """Take everything the purses have room for, in ascending order of value, and return the kind of each."""
        basket, taken = self._basket, []
        for _value, number in sorted(
            [(one, number) for number, kind in enumerate(basket.kinds) for one in kind.values]
        ):
            if basket.room(number, 1):
                basket.take(number, 1)
                taken.append(number)
        return taken

    def _is_enough(self, taken: Sequence[int]) -> bool:
        self._take(taken)
        return self._basket.is_enough() and self._asked(self._basket.counts)

    def _take(self, taken: Sequence[int]) -> None:
        """Take exactly these."""
        self._emptied(None)
        for number in taken:
            self._basket.take(number, 1)

    def _emptied(self, found: FittingChoice | None) -> FittingChoice | None:
        for number, count in enumerate(self._basket.counts):
            self._basket.take(number, -count)
        return found

    def _extend(self, start: int, left: int) -> None:
        """Try all ways to add exactly this many things of the kinds from this position on."""
        basket = self._basket
        if not self._budget.take() or not self._may_succeed(start, left):
            return
        if not left:
            if self._asked(basket.counts):
                self._found = basket.cost[1], tuple(basket.counts)
            return
        number = self._order[start]
        for more in range(basket.room(number, min(left, len(basket.kinds[number].values))), -1, -1):
            basket.take(number, more)
            self._extend(start + 1, left - more)
            basket.take(number, -more)

    def _may_succeed(self, start: int, left: int) -> bool:
        """Tell whether this many more can meet the sums and be worth less than the best choice found."""
        most, worth = self._rest(start)
        if left >= len(worth):
            return False
        if self._found is not None and self._basket.cost[1] + worth[left] >= self._found[0]:
            return False
        return all([need <= of[left] for need, of in zip(self._basket.needed, most, strict=True)])

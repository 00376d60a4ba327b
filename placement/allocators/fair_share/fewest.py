"""Searches for the fewest of many things that together are enough, and among those for the least valuable.

Things that differ only in value form a *kind*; the least valuable of a kind are taken first. What is enough is a matter
of sums and, where places matter, of an oracle: taking more never makes it fit less.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from placement.allocators import Budget

Purse = tuple[int, ...]
"""A joint cap, class by class, on what may be taken from the things that draw on it."""

Worth = int | Fraction

Cost = tuple[int, Worth]
"""The sort key of a choice: the number of things, then their total value."""

CostedChoice = tuple[Cost, tuple[int, ...]]
"""The cost of a choice, and how many of each kind it takes."""

Fits = Callable[[Sequence[int]], bool]
"""The oracle: whether it fits once this many of each kind are taken."""

QUESTION = 50
"""The cost, in steps, of asking the oracle."""


class Kind(NamedTuple):
    """Things that differ only in value.

    Args:
        gives: how much each contributes to every need.
        takes: how much each takes out of its purses, by class.
        values: their values, in ascending order.
        purses: the indexes of the purses they draw on.
        is_bound: whether their purses must have room for them. Unbound things use up their purses too.
    """

    gives: tuple[int, ...]
    takes: tuple[int, ...]
    values: tuple[Worth, ...]
    purses: tuple[int, ...] = ()
    is_bound: bool = True


class Choices(NamedTuple):
    """The kinds to choose from, how much is needed of each need, and the purses."""

    kinds: Sequence[Kind]
    needed: Sequence[int]
    purses: Sequence[Purse]


_Prospects = tuple[Sequence[Sequence[int]], Sequence[Worth]]
"""By the number of things: the most of each need that they can give, and the least they can be worth."""


class FewestSearch:
    """A search among kinds, one step for each choice looked at. Without an oracle, what is enough by sums fits."""

    def __init__(self, choices: Choices, budget: Budget, *, fits: Fits | None = None) -> None:
        self._kinds = choices.kinds
        self._needed = list(choices.needed)
        self._purses = choices.purses
        self._budget = budget
        self._fits = fits
        self._counts = [0] * len(choices.kinds)
        """How many of each kind are taken at present."""
        self._worth: Worth = 0
        self._taken = [[0] * len(purse) for purse in choices.purses]
        self._taken_bound = [[0] * len(purse) for purse in choices.purses]
        self._prospects: dict[int, _Prospects] = {}
        self._best: tuple[Worth, tuple[int, ...]] | None = None

    @property
    def bound(self) -> Cost | None:
        """A lower bound on the cost; None if, by the sums, even everything is not enough."""
        largest, cheapest = self._prospects_from(0)
        least = max([bisect_left(gives, need) for gives, need in zip(largest, self._needed, strict=True)], default=0)
        return (least, cheapest[least]) if least < len(cheapest) else None

    def best(self, below: Cost | None = None) -> CostedChoice | None:
        """Return the fewest and least valuable things, if cheaper than ``below``; greedy if the budget runs out."""
        if self.bound is None or not self._is_accepted([len(kind.values) for kind in self._kinds]):
            return None
        greedy = self.greedy()
        if greedy is not None and below is not None and greedy[0] >= below:
            greedy = None
        return self.least(greedy[0] if greedy else below) or greedy

    def greedy(self) -> CostedChoice | None:
        """Return the better of two quick answers, which is the best one if a single thing is enough."""
        return min(filter(None, [self.in_order_of_value(), self._in_order(self._by_size())]), default=None)

    def in_order_of_value(self) -> CostedChoice | None:
        """Return what is needed if things are taken in ascending order of value; None if everything is not enough."""
        things = sorted([(value, number) for number, kind in enumerate(self._kinds) for value in kind.values])
        return self._in_order(number for _value, number in things)

    def least(self, below: Cost | None) -> CostedChoice | None:
        """Return the best choice without a greedy answer to fall back on: None if the budget runs out."""
        if self.bound is None:
            return None
        _largest, worth = self._prospects_from(0)
        for count in range(self.bound[0], len(worth)):
            if (below is not None and (count, worth[count]) >= below) or not self._budget.take():
                break
            self._best = (below[1], ()) if below is not None and count == below[0] else None
            self._extend(0, count)
            if self._best is not None and self._best[1]:
                return (count, self._best[0]), self._best[1]
        return None

    @cached_property
    def _order(self) -> list[int]:
        """The kinds in ascending order of value; where sums decide, only those that are of any use."""
        useful = [number for number in range(len(self._kinds)) if self._fits is not None or self._helps(number)]
        return sorted(useful, key=lambda number: (self._kinds[number].values[0], number))

    def _prospects_from(self, start: int) -> _Prospects:
        """Return the prospects of the kinds from this position on."""
        if start not in self._prospects:
            kinds = [self._kinds[number] for number in self._order[start:]]
            gives = [
                sorted([kind.gives[need] for kind in kinds for _value in kind.values], reverse=True)
                for need in range(len(self._needed))
            ]
            values = sorted([value for kind in kinds for value in kind.values])
            largest = [[0, *accumulate(of_need)] for of_need in gives]
            self._prospects[start] = largest, [0, *accumulate(values)]
        return self._prospects[start]

    @property
    def _is_enough(self) -> bool:
        return max(self._needed, default=0) <= 0

    def _helps(self, number: int) -> bool:
        """Tell whether a kind gives something that is still needed."""
        return any([need > 0 < gives for need, gives in zip(self._needed, self._kinds[number].gives, strict=True)])

    def room(self, number: int, count: int) -> int:
        """Return how many of a kind, up to this many, the purses have room for."""
        kind = self._kinds[number]
        for purse in kind.purses:
            state = zip(self._purses[purse], self._taken[purse], self._taken_bound[purse], kind.takes, strict=True)
            for cap, taken, bound, takes in state:
                if takes and (kind.is_bound or bound):
                    count = min(count, (cap - taken) // takes)
        return max(count, 0)

    def _take(self, number: int, count: int) -> None:
        """Take this many more of a kind; a negative count puts them back."""
        kind, before = self._kinds[number], self._counts[number]
        self._counts[number] = after = before + count
        self._worth += sum(kind.values[before:after]) - sum(kind.values[after:before])
        self._needed = [need - count * gives for need, gives in zip(self._needed, kind.gives, strict=True)]
        for purse in kind.purses:
            taken, bound = self._taken[purse], self._taken_bound[purse]
            for class_, takes in enumerate(kind.takes):
                taken[class_] += count * takes
                bound[class_] += count * (takes > 0 and kind.is_bound)

    def _take_exactly(self, numbers: Sequence[int]) -> bool:
        """Take one of each of these, and nothing else, and tell whether it is enough."""
        for number, count in enumerate(self._counts):
            if count:
                self._take(number, -count)
        for number in numbers:
            self._take(number, 1)
        return self._is_enough and self._is_accepted()

    def _is_accepted(self, counts: Sequence[int] | None = None) -> bool:
        """Ask the oracle about these counts, by default about what is taken."""
        if self._fits is None:
            return True
        return self._budget.take(QUESTION) and self._fits(tuple(self._counts) if counts is None else counts)

    def _in_order(self, queue: Iterator[int]) -> CostedChoice | None:
        """Take things in some order until it fits, then put back what is not needed, the most valuable first."""
        taken = list[int]()
        for number in queue:
            if self._fits is None and self._is_enough:
                break
            if self.room(number, 1) and (self._fits is not None or self._helps(number)):
                self._take(number, 1)
                taken.append(number)
        choice = None
        if self._take_exactly(taken):
            # More never fits less, so bisection finds the shortest prefix that is enough.
            length = bisect_left(range(1, len(taken)), 1, key=lambda length: self._take_exactly(taken[:length])) + 1
            self._take_exactly(taken[:length])
            kept: set[int] = set()
            while droppable := [number for number, count in enumerate(self._counts) if count and number not in kept]:
                last = {number: self._kinds[number].values[self._counts[number] - 1] for number in droppable}
                dearest = max(droppable, key=last.__getitem__)
                self._take(dearest, -1)
                if not (self._is_enough and self._is_accepted()):
                    self._take(dearest, 1)
                    kept.add(dearest)
            choice = (sum(self._counts), self._worth), tuple(self._counts)
        self._take_exactly(())
        return choice

    def _by_size(self) -> Iterator[int]:
        """Yield the kind of each thing: those first that give most of what is still needed, then the least valuable."""
        is_sorted = False
        while not is_sorted:
            needed = [max(need, 0) for need in self._needed]
            things: list[tuple[float, Worth, int]] = []
            for number, kind in enumerate(self._kinds):
                shares = [min(gives / need, 1.0) for gives, need in zip(kind.gives, needed, strict=True) if need]
                if size := sum(shares):
                    things += [(-size, value, number) for value in kind.values[self._counts[number] :]]
            is_sorted = True
            for _size, _value, number in sorted(things):
                yield number
                if [need > 0 for need in self._needed] != [need > 0 for need in needed]:
                    # A need that has been met no longer counts, so what is left has to be sorted anew.
                    is_sorted = False
                    break

    def _extend(self, start: int, remaining: int) -> None:
        """Try all ways to add exactly this many things of the kinds from this position on."""
        largest, worth = self._prospects_from(start)
        if not self._budget.take() or remaining >= len(worth):
            return
        if self._best is not None and self._worth + worth[remaining] >= self._best[0]:
            return
        if any([need > gives[remaining] for need, gives in zip(self._needed, largest, strict=True)]):
            return
        if not remaining:
            if self._is_accepted():
                self._best = self._worth, tuple(self._counts)
            return
        number = self._order[start]
        for more in range(self.room(number, min(remaining, len(self._kinds[number].values))), -1, -1):
            self._take(number, more)
            self._extend(start + 1, remaining - more)
            self._take(number, -more)


MAX_EXACT = 400
"""The most things to search exhaustively, steps permitting; of more, quick answers are compared with a bound."""


def fewest(choices: Choices, *, steps: int) -> tuple[Sequence[int] | None, bool]:
    """Return how many of each kind are the fewest, then least valuable, that are enough by sums; or None.

    And whether that is proven: everything was searched, one thing is enough, or it meets a bound derived from sums.
    """
    budget = Budget(steps)
    search = FewestSearch(choices, budget)
    if sum([len(kind.values) for kind in choices.kinds]) <= MAX_EXACT:
        choice = search.best()
        return choice and choice[1], not budget.was_hit
    best = search.greedy()
    may_go = [kind for number, kind in enumerate(choices.kinds) if search.room(number, 1)]
    bound = FewestSearch(choices._replace(kinds=may_go), budget).bound
    if best is None:
        return None, bound is None
    return best[1], best[0][0] == 1 or best[0] == bound

"""Searches for the fewest of many things that together are enough, and among those for the least valuable.

Things that differ only in value form a *kind*; the least valuable of a kind are taken first. What is enough is a matter
of sums and, where places matter, of an oracle: taking more never makes it fit less.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate
from typing import NamedTuple

from placement.allocators.budget import Budget

Purse = tuple[int, ...]
"""A joint cap, class by class, on what may be taken from the things that draw on it."""

Cost = tuple[int, int]
"""The sort key of a choice: the number of things, then their total value."""

CostedChoice = tuple[Cost, tuple[int, ...]]
"""The cost of a choice, and how many of each kind it takes."""

Fits = Callable[[Sequence[int]], bool]
"""The oracle: whether it fits once this many of each kind are taken."""

QUESTION = 50
"""The usual cost, in steps, of asking the oracle."""


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


class Basket:
    """A partial choice: how many of each kind are taken, and how much is still needed."""

    def __init__(self, kinds: Sequence[Kind], needed: Sequence[int], purses: Sequence[Purse]) -> None:
        self.kinds = kinds
        self.counts = [0] * len(kinds)
        self.needed = list(needed)
        self.cost: Cost = 0, 0
        self.purses = purses
        self._touched: dict[int, None] = {}
        self._taken = [[0] * len(purse) for purse in purses]
        self._bound = [[0] * len(purse) for purse in purses]

    @property
    def is_enough(self) -> bool:
        """Whether every need is met."""
        return max(self.needed, default=0) <= 0

    def helps(self, number: int) -> bool:
        """Tell whether a kind gives something that is still needed."""
        return any([need > 0 < gives for need, gives in zip(self.needed, self.kinds[number].gives, strict=True)])

    def room(self, number: int, count: int) -> int:
        """Return how many of a kind, up to this many, the purses have room for."""
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
        self._touched[number] = None
        self.needed = [need - count * gives for need, gives in zip(self.needed, kind.gives, strict=True)]
        for purse in kind.purses:
            taken, bound = self._taken[purse], self._bound[purse]
            for class_, takes in enumerate(kind.takes):
                taken[class_] += count * takes
                bound[class_] += count * (takes > 0 and kind.is_bound)

    def empty(self) -> None:
        """Put everything back."""
        for number in [*self._touched]:
            self.take(number, -self.counts[number])
        self._touched.clear()

    def taken(self) -> list[int]:
        """Return the kinds of which something is taken, those first whose last thing is the most valuable."""
        held = [number for number in self._touched if self.counts[number]]
        return sorted(held, key=lambda number: (-self.kinds[number].values[self.counts[number] - 1], number))


class _Prospects(NamedTuple):
    """By the number of things: the most of each need that they can give, and the least they can be worth."""

    most: Sequence[Sequence[int]]
    cheapest: Sequence[int]


def _prospects(kinds: Sequence[Kind], needs: int) -> _Prospects:
    every = [
        sorted([kind.gives[need] for kind in kinds for _value in kind.values], reverse=True) for need in range(needs)
    ]
    values = sorted([value for kind in kinds for value in kind.values])
    return _Prospects([[0, *accumulate(gives)] for gives in every], [0, *accumulate(values)])


def _bound(prospects: _Prospects, needed: Sequence[int]) -> Cost | None:
    """Return a lower bound on the cost of any choice; None if, by sums, even everything is not enough."""
    least = max([bisect_left(most, need) for most, need in zip(prospects.most, needed, strict=True)], default=0)
    return (least, prospects.cheapest[least]) if least < len(prospects.cheapest) else None


class FewestSearch:
    """A search among kinds of things.

    Args:
        nothing: the empty choice, with the kinds to choose from and the needs as sums. It is empty again afterwards.
        budget: one step per choice looked at.
        fits: the oracle; by default, what is enough by sums fits.
        question: the steps that one call of ``fits`` counts for.
    """

    def __init__(self, nothing: Basket, budget: Budget, *, fits: Fits | None = None, question: int = QUESTION) -> None:
        self._basket = nothing
        self._budget = budget
        self._fits = fits
        self._question = question
        self._rests: dict[int, _Prospects] = {}
        self._best: tuple[int, tuple[int, ...]] | None = None

    @cached_property
    def _order(self) -> list[int]:
        """The kinds in ascending order of value."""
        kinds = self._basket.kinds
        # Where sums decide, what gives nothing that is needed is of no use.
        useful = [number for number in range(len(kinds)) if self._fits is not None or self._basket.helps(number)]
        return sorted(useful, key=lambda number: (kinds[number].values[0], number))

    def _rest(self, start: int) -> _Prospects:
        """Return the prospects of the kinds from this position on."""
        if start not in self._rests:
            kinds = [self._basket.kinds[number] for number in self._order[start:]]
            self._rests[start] = _prospects(kinds, len(self._basket.needed))
        return self._rests[start]

    @property
    def bound(self) -> Cost | None:
        """A lower bound on the cost; None if, by the sums, even everything is not enough."""
        return _bound(self._rest(0), self._basket.needed)

    def best(self, below: Cost | None = None) -> CostedChoice | None:
        """Return the fewest things, among those the least valuable; a greedy answer if the budget runs out.

        Args:
            below: an upper bound; only cheaper choices count.
        """
        everything = [len(kind.values) for kind in self._basket.kinds]
        if self.bound is None or not self._asked(everything):
            return None
        greedy = min(filter(None, [self.in_order(by_value), self.in_order(by_size)]), default=None)
        if greedy is not None and below is not None and greedy[0] >= below:
            greedy = None
        return self.least(greedy[0] if greedy else below) or greedy

    def least(self, below: Cost | None) -> CostedChoice | None:
        """Return the same without a greedy answer to fall back on: None if the budget runs out."""
        if self.bound is None:
            return None
        worth = self._rest(0).cheapest
        for count in range(self.bound[0], len(worth)):
            if (below is not None and (count, worth[count]) >= below) or not self._budget.take():
                break
            self._best = (below[1], ()) if below is not None and count == below[0] else None
            self._extend(0, count)
            if self._best is not None and self._best[1]:
                return (count, self._best[0]), self._best[1]
        return None

    def _asked(self, counts: Sequence[int]) -> bool:
        return self._fits is None or (self._budget.take(self._question) and self._fits(counts))

    def in_order(self, queue: Callable[[Basket], Iterable[int]]) -> CostedChoice | None:
        """Take things in some order until it fits, then put back what is not needed, the most valuable first."""
        basket, taken = self._basket, list[int]()
        for number in queue(basket):
            if self._fits is None and basket.is_enough:
                break
            if basket.room(number, 1) and (self._fits is not None or basket.helps(number)):
                basket.take(number, 1)
                taken.append(number)
        if not self._is_enough(taken):
            return self._emptied(None)
        # More never fits less, so bisection finds the shortest prefix that is enough.
        length = bisect_left(range(1, len(taken)), 1, key=lambda length: self._is_enough(taken[:length])) + 1
        self._is_enough(taken[:length])
        self._drop_unneeded()
        return self._emptied((basket.cost, tuple(basket.counts)))

    def _is_enough(self, taken: Sequence[int]) -> bool:
        """Take exactly these, and tell whether it fits."""
        self._basket.empty()
        for number in taken:
            self._basket.take(number, 1)
        return self._basket.is_enough and self._asked(self._basket.counts)

    def _drop_unneeded(self) -> None:
        tried: set[int] = set()
        while left := [number for number in self._basket.taken() if number not in tried]:
            if not self._dropped(left[0]):
                tried.add(left[0])

    def _dropped(self, number: int) -> bool:
        self._basket.take(number, -1)
        if self._basket.is_enough and self._asked(self._basket.counts):
            return True
        self._basket.take(number, 1)
        return False

    def _emptied(self, choice: CostedChoice | None) -> CostedChoice | None:
        self._basket.empty()
        return choice

    def _extend(self, start: int, left: int) -> None:
        """Try all ways to add exactly this many things of the kinds from this position on."""
        basket = self._basket
        if not self._budget.take() or not self._may_succeed(start, left):
            return
        if not left:
            if self._asked(basket.counts):
                self._best = basket.cost[1], tuple(basket.counts)
            return
        number = self._order[start]
        for more in range(basket.room(number, min(left, len(basket.kinds[number].values))), -1, -1):
            basket.take(number, more)
            self._extend(start + 1, left - more)
            basket.take(number, -more)

    def _may_succeed(self, start: int, left: int) -> bool:
        """Tell whether this many more can meet the sums and be worth less than the best choice so far."""
        most, worth = self._rest(start)
        if left >= len(worth):
            return False
        if self._best is not None and self._basket.cost[1] + worth[left] >= self._best[0]:
            return False
        return all([need <= gives[left] for need, gives in zip(self._basket.needed, most, strict=True)])


def in_order_of_value(nothing: Basket) -> CostedChoice | None:
    """Return what is needed if things are taken in ascending order of value; None if even everything is not enough."""
    return FewestSearch(nothing, Budget(0)).in_order(by_value)


def by_value(nothing: Basket) -> Iterator[int]:
    """Yield the kind of each thing, the least valuable first."""
    things = [(value, number) for number, kind in enumerate(nothing.kinds) for value in kind.values]
    return (number for _value, number in sorted(things))


def by_size(nothing: Basket) -> Iterator[int]:
    """Yield the kind of each thing: those first that give most of what is still needed, then the least valuable."""
    left = dict.fromkeys(range(len(nothing.kinds)))
    while left:
        needed = [max(need, 0) for need in nothing.needed]
        things = [
            (size, value, number)
            for number in left
            if (size := _size(nothing.kinds[number], needed))
            for value in nothing.kinds[number].values[nothing.counts[number] :]
        ]
        left = {}
        for _size_of, _value, number in sorted(things):
            yield number
            if [max(need, 0) > 0 for need in nothing.needed] != [need > 0 for need in needed]:
                # A need that has been met no longer counts, so what is left has to be sorted anew.
                left = dict.fromkeys(range(len(nothing.kinds)))
                break


def _size(kind: Kind, needed: Sequence[int]) -> float:
    return -sum([min(gives / need, 1.0) for gives, need in zip(kind.gives, needed, strict=True) if need])


MAX_EXACT = 400
"""The most things to search exhaustively, steps permitting: of more, those that give most and are worth least."""


class Fewest(NamedTuple):
    """How many of each kind are chosen, None if there is no answer, and whether that is proven optimal."""

    counts: Sequence[int] | None
    complete: bool


def fewest(nothing: Basket, *, steps: int) -> Fewest:
    """Return the fewest things that are enough by sums, among those the least valuable.

    A single thing that is enough needs no search. The result is proven optimal where everything was searched, or where
    it meets a lower bound derived from sums.

    Args:
        nothing: the empty choice.
        steps: the most partial choices to look at.
    """
    kinds = nothing.kinds
    alone = _alone(nothing)
    if alone is not None:
        return Fewest([int(number == alone) for number in range(len(kinds))], complete=True)
    budget = Budget(steps)
    if sum([len(kind.values) for kind in kinds]) <= MAX_EXACT:
        choice = FewestSearch(nothing, budget).best()
        return Fewest(choice and choice[1], complete=not budget.was_hit)
    counts = _shortlist(nothing)
    listed = [
        kind._replace(values=kind.values[: counts[number]]) for number, kind in enumerate(kinds) if counts[number]
    ]
    choice = FewestSearch(Basket(listed, nothing.needed, nothing.purses), budget).best()
    if choice is not None:
        each = iter(choice[1])
        choice = choice[0], tuple([next(each) if count else 0 for count in counts])
    best = min(filter(None, [choice, in_order_of_value(nothing)]), default=None)
    may_go = [kind for number, kind in enumerate(kinds) if nothing.room(number, 1)]
    bound = _bound(_prospects(may_go, len(nothing.needed)), nothing.needed)
    return Fewest(best and best[1], complete=bound == (best and best[0]))


def _alone(nothing: Basket) -> int | None:
    """Return the kind of the least valuable thing that is enough on its own; None if there is none."""
    enough = [
        (kind.values[0], number)
        for number, kind in enumerate(nothing.kinds)
        if all([gives >= need for gives, need in zip(kind.gives, nothing.needed, strict=True)])
        and nothing.room(number, 1)
    ]
    return min(enough, default=(0, None))[1]


def _shortlist(nothing: Basket) -> list[int]:
    """Return how many of each kind to search: those that give most, overall and of each owner, and are worth least."""
    things = [
        (size, value, number)
        for number, kind in enumerate(nothing.kinds)
        if (size := _size(kind, nothing.needed))
        for value in kind.values
    ]
    of_owner: dict[tuple[int, ...], tuple[float, int, int]] = {}
    for thing in things:
        owner = nothing.kinds[thing[-1]].purses
        of_owner[owner] = min(thing, of_owner.get(owner, thing))
    chosen = [
        Counter([number for _size_, _value, number in nsmallest(MAX_EXACT // 2, things)]),
        Counter([number for _value, _size_, number in nsmallest(MAX_EXACT // 4, [(v, s, n) for s, v, n in things])]),
        Counter([number for _size_, _value, number in nsmallest(MAX_EXACT // 4, of_owner.values())]),
    ]
    return [max([counts[number] for counts in chosen]) for number in range(len(nothing.kinds))]

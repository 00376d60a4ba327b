"""The fewest of many things that together give enough, and of these the least valuable.

Things that are alike but for their value are one *kind*, of which the least valuable are taken first. A *purse* says
how much may be taken together from some kinds. Small problems are solved exactly. For large ones an answer is made by
taking in order, the largest or the least valuable first, and bettered by exchanges, one for one and one for two.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, nsmallest
from itertools import accumulate, combinations_with_replacement
from typing import NamedTuple

MOST_EXACT = 400
"""Of how many things at most all choices are looked at, as far as the steps go."""

MOST_LISTED = 200
"""Of how many kinds at least exchanges are looked for, if there are more."""

MOST_LOOKS = 20_000
"""How many kinds are looked at for exchanges, each time one is considered."""


Purse = tuple[int, ...]
"""How much may be taken together from the kinds that are in it, of each class."""


class Kind(NamedTuple):
    """Things that are alike but for their value.

    Args:
        gives: what each gives towards what is needed.
        takes: what each takes from its purses, of each class.
        values: what they are worth in any unit, the least first.
        purses: the numbers of the purses they are in.
        is_bound: whether the purses have to have room for them. What is not bound counts in the purses all the same,
            but only matters for the others.
    """

    gives: tuple[int, ...]
    takes: tuple[int, ...]
    values: tuple[int, ...]
    purses: tuple[int, ...] = ()
    is_bound: bool = True


class Found(NamedTuple):
    """How many of each kind, none if there is no answer; and whether there is certainly no better one."""

    counts: tuple[int, ...] | None
    complete: bool


def fewest(kinds: Sequence[Kind], needed: Sequence[int], purses: Sequence[Purse], *, steps: int) -> Found:
    """Return the fewest things that give enough, of these the least valuable.

    Args:
        kinds: what to choose from; what is taken in order is taken from the first of equally good ones.
        needed: how much of each, more than 0.
        purses: how much may be taken together.
        steps: how many partial choices are looked at.
    """
    cheap = Basket(kinds, needed, purses)
    _least_valuable_first(cheap)
    if cheap.is_enough():
        cheap.drop_unneeded()
    listed = _shortlist(kinds, needed, [number for number, count in enumerate(cheap.counts) if count])
    best = _bettered(
        Basket([kinds[number] for number in listed], needed, purses), [cheap.counts[number] for number in listed]
    )
    counts = None if best is None else _spread(best.counts, listed, len(kinds))
    if sum([len(kind.values) for kind in kinds]) > MOST_EXACT:
        return Found(counts, complete=False)
    search = _Search(Basket(kinds, needed, purses), counts, steps)
    search.extend(0)
    return Found(search.best, complete=search.steps > 0)


def _bettered(basket: "Basket", cheap: Sequence[int]) -> "Basket | None":
    """Return the better choice of two: what gives most, and these that are worth least, each after exchanges."""
    found = []
    for order in (_largest_first, lambda choice: choice.take_all(cheap)):
        choice = Basket(basket.kinds, basket.needed, basket.purses)
        order(choice)
        if choice.is_enough():
            choice.drop_unneeded()
            _exchange(choice)
            found.append(choice)
    return min(found, key=lambda choice: choice.cost, default=None)


def _shortlist(kinds: Sequence[Kind], needed: Sequence[int], taken: Sequence[int]) -> list[int]:
    """Return the kinds among which exchanges are looked for: those taken, those that give most, the least valuable.

    And the one that gives most of each that have the same purses.
    """
    if len(kinds) <= MOST_LISTED:
        return list(range(len(kinds)))

    def worth(number: int) -> float:
        return sum([min(need, gives) / need for need, gives in zip(needed, kinds[number].gives, strict=True)])

    worths = [worth(number) for number in range(len(kinds))]
    largest = sorted(range(len(kinds)), key=lambda number: (-worths[number], kinds[number].values[0], number))
    cheapest = nsmallest(MOST_LISTED // 2, range(len(kinds)), key=lambda number: (kinds[number].values[0], number))
    of_each = {kinds[number].purses: number for number in reversed(largest)}.values()
    return sorted({*taken[:MOST_LISTED], *largest[:MOST_LISTED], *cheapest, *list(of_each)[-MOST_LISTED:]})


def _spread(counts: Sequence[int], listed: Sequence[int], length: int) -> tuple[int, ...]:
    """Return counts of some kinds as counts of all."""
    spread = [0] * length
    for number, count in zip(listed, counts, strict=True):
        spread[number] = count
    return tuple(spread)


Cost = tuple[int, int]
"""What sorts choices: how many things, and what they are worth."""


def _cost(kinds: Sequence[Kind], counts: Sequence[int]) -> Cost:
    values = [sum(kind.values[:count]) for kind, count in zip(kinds, counts, strict=True)]
    return sum(counts), sum(values)


class Basket:
    """A choice: how many of each kind were taken, and what is still needed."""

    def __init__(self, kinds: Sequence[Kind], needed: Sequence[int], purses: Sequence[Purse]) -> None:
        self.kinds = kinds
        self.counts = [0] * len(kinds)
        self.needed = list(needed)
        self.cost: Cost = 0, 0
        self.purses = purses
        self._taken = [[0] * len(purse) for purse in purses]
        self._bound = [[0] * len(purse) for purse in purses]

    def is_enough(self) -> bool:
        """Tell whether nothing more is needed."""
        return max(self.needed, default=0) <= 0

    def useful(self, number: int) -> int:
        """Return how many more of a kind could be of use and be taken at once."""
        kind = self.kinds[number]
        wanted = [-(-need // gives) for need, gives in zip(self.needed, kind.gives, strict=True) if need > 0 < gives]
        return self._room(number, min(max(wanted, default=0), len(kind.values) - self.counts[number]))

    def _room(self, number: int, count: int) -> int:
        """Return a count, or as many as the purses have room for if that is less."""
        kind = self.kinds[number]
        for purse in kind.purses:
            state = zip(self.purses[purse], self._taken[purse], self._bound[purse], kind.takes, strict=True)
            for room, taken, bound, takes in state:
                if takes and (kind.is_bound or bound):
                    count = min(count, (room - taken) // takes)
        return max(count, 0)

    def take(self, number: int, count: int) -> None:
        """Take so many more of a kind, or put them back."""
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

    def take_all(self, counts: Sequence[int]) -> None:
        """Take so many of each."""
        for number, count in enumerate(counts):
            self.take(number, count)

    def drop_unneeded(self) -> None:
        """Put back what is not needed, the most valuable first."""
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


def _largest_first(basket: Basket) -> None:
    """Take what gives the most of what is needed, of equals the least valuable."""
    whole = [max(need, 1) for need in basket.needed]
    left = set(range(len(basket.kinds)))
    while left and not basket.is_enough():
        best = max(left, key=lambda number: _worth(basket, number, whole))
        useful = basket.useful(best)
        if not useful:
            left.remove(best)
            continue
        kind = basket.kinds[best]
        # Those that give no more than is needed can be taken at once; the last one is weighed anew.
        whole_ones = [need // gives for need, gives in zip(basket.needed, kind.gives, strict=True) if need > 0 < gives]
        basket.take(best, max(1, min(useful, *whole_ones)))


def _worth(basket: Basket, number: int, whole: Sequence[int]) -> tuple[float, int, int]:
    kind, count = basket.kinds[number], basket.counts[number]
    if count == len(kind.values):
        return 0, 0, -number
    parts = [
        min(need, gives) / of for need, gives, of in zip(basket.needed, kind.gives, whole, strict=True) if need > 0
    ]
    return sum(parts), -kind.values[count], -number


def _least_valuable_first(basket: Basket) -> None:
    """Take in the order of values; what turns out not to be needed is put back later."""
    every = [(value, number) for number, kind in enumerate(basket.kinds) for value in kind.values]
    useless: set[int] = set()
    for _value, number in sorted(every):
        if basket.is_enough():
            break
        if number not in useless and basket.useful(number):
            basket.take(number, 1)
        else:
            useless.add(number)


def _exchange(basket: Basket) -> None:
    """Better a choice: put two or one back and take a single other one, as long as that helps."""
    tries = MOST_LOOKS // len(basket.kinds)
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
    """Put these back and take the best single one that is enough; as before if it is not better."""
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
    """Yield what alone would be enough, with its value."""
    needs = [(place, need) for place, need in enumerate(basket.needed) if need > 0]
    for number, kind in enumerate(basket.kinds):
        is_left = basket.counts[number] < len(kind.values)
        if is_left and all([need <= kind.gives[place] for place, need in needs]) and basket.useful(number):
            yield kind.values[basket.counts[number]], number


class _Search:
    """All choices, kind by kind, without those that cannot be better than the best one found."""

    def __init__(self, basket: Basket, best: tuple[int, ...] | None, steps: int) -> None:
        self.best = best
        self.steps = steps
        self._cost = None if best is None else _cost(basket.kinds, best)
        self._basket = basket
        kinds = basket.kinds
        self._order = sorted(range(len(kinds)), key=lambda number: tuple([-gives for gives in kinds[number].gives]))
        rests = [[kinds[number] for number in self._order[start:]] for start in range(len(kinds))]
        self._most = [[_most_of(rest, need) for need in range(len(basket.needed))] for rest in rests]
        self._cheapest = [_cheapest(rest) for rest in rests]

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


def _most_of(kinds: Iterable[Kind], need: int) -> list[int]:
    """Return the most that so many things give of one need, for each number of things."""
    every = sorted([kind.gives[need] for kind in kinds for _value in kind.values], reverse=True)
    return [0, *accumulate(every)]


def _cheapest(kinds: Iterable[Kind]) -> list[int]:
    """Return the least that so many things are worth, for each number of things."""
    every = sorted([value for kind in kinds for value in kind.values])
    return [0, *accumulate(every)]

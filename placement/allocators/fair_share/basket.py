"""A choice of things, kind by kind: its cost, what it still lacks, and how much more fits in.

Things that differ only in value form a *kind*; the least valuable of a kind are taken first.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from placement.allocators.fair_share.taking import Purse


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

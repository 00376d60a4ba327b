"""Takes things in an order until that is enough: the least valuable first, or those that give most.

So an answer is found wherever giving back in the order of values would do, and among 100,000 things in a fraction of a
second; ``fewest`` betters it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop
from operator import add
from typing import NamedTuple

Purse = tuple[int, ...]
"""How much may be taken together from the things that are in it, of each class."""


class Giver(NamedTuple):
    """What things have in common that are in the same purses.

    Args:
        purses: the numbers of the purses.
        is_bound: whether the purses have to have room for them. What is not bound counts in the purses all the same,
            but only matters for the others.
    """

    purses: tuple[int, ...] = ()
    is_bound: bool = True


@dataclass(frozen=True, slots=True)
class Things:
    """What may be taken, column by column, and what for.

    Args:
        gives: what each gives towards what is needed.
        takes: what each takes from its purses, of each class.
        values: what each is worth, in any unit.
        givers: the number of each one's giver. Of equals, the first giver's are taken first.
        needed: how much is needed of each, more than 0.
        purses: how much may be taken together.
        of_giver: the givers.
    """

    gives: Sequence[tuple[int, ...]]
    takes: Sequence[tuple[int, ...]]
    values: Sequence[int]
    givers: Sequence[int]
    needed: tuple[int, ...]
    purses: Sequence[Purse]
    of_giver: Sequence[Giver]

    def __len__(self) -> int:
        return len(self.values)


def may_go_alone(things: Things, number: int) -> bool:
    """Tell whether the purses of a thing have room for it, if nothing else is taken."""
    giver, takes = things.of_giver[things.givers[number]], things.takes[number]
    return not giver.is_bound or not any(
        [
            taken > room
            for purse in giver.purses
            for taken, room in zip(takes, things.purses[purse], strict=True)
            if taken
        ]
    )


def least_valuable_first(things: Things) -> list[int] | None:
    """Take in the order of values; return what is needed of that, or None if even all is not enough."""
    taking = _Taking(things)
    queue = list(zip(things.values, things.givers, things.takes, range(len(things)), strict=True))
    heapify(queue)
    while queue and not taking.is_enough():
        taking.try_one(heappop(queue)[-1])
    return taking.result()


BySize = tuple[float, int, int, tuple[int, ...], int]
"""What sorts things: how much each gives (negative), its value, its giver, what it takes; and its number."""


def largest_first(things: Things, numbers: Sequence[int]) -> list[int] | None:
    """Take of these what gives most of what is needed, of equals the least valuable; else as above."""
    taking = _Taking(things)
    while numbers and not taking.is_enough():
        open_needs = taking.open_needs()
        queue = by_size(things, numbers, taking.needed)
        heapify(queue)
        # What is needed no longer does not count: the rest are put in order anew.
        while queue and taking.open_needs() == open_needs:
            taking.try_one(heappop(queue)[-1])
        numbers = [entry[-1] for entry in queue]
    return taking.result()


def by_size(things: Things, numbers: Sequence[int], needed: Sequence[int]) -> list[BySize]:
    """Return what sorts these by how much they give of what is needed."""
    sizes = [0.0] * len(numbers)
    for place, need in enumerate(needed):
        if need > 0:
            gives = [things.gives[number][place] for number in numbers]
            parts = [-amount / need if amount < need else -1.0 for amount in gives]
            sizes = list(map(add, sizes, parts))
    return [
        (size, things.values[number], things.givers[number], things.takes[number], number)
        for size, number in zip(sizes, numbers, strict=True)
    ]


class _Taking:
    """What was taken, what is still needed, and how full the purses are."""

    def __init__(self, things: Things) -> None:
        self._things = things
        self.needed = list(things.needed)
        self._taken: list[int] = []
        self._spent = [[0] * len(purse) for purse in things.purses]
        self._bound = [[False] * len(purse) for purse in things.purses]

    def is_enough(self) -> bool:
        return max(self.needed, default=0) <= 0

    def open_needs(self) -> list[bool]:
        return [need > 0 for need in self.needed]

    def try_one(self, number: int) -> None:
        """Take a thing if it is of use, and its purses have room. Where they have none, they never will."""
        gives, takes = self._things.gives[number], self._things.takes[number]
        giver = self._things.of_giver[self._things.givers[number]]
        if not any([need > 0 < amount for need, amount in zip(self.needed, gives, strict=True)]):
            return
        if not all([self._has_room(purse, takes, is_bound=giver.is_bound) for purse in giver.purses]):
            return
        self._taken.append(number)
        self.needed = [need - amount for need, amount in zip(self.needed, gives, strict=True)]
        for purse in giver.purses:
            spent, bound = self._spent[purse], self._bound[purse]
            for class_, amount in enumerate(takes):
                spent[class_] += amount
                bound[class_] |= amount > 0 and giver.is_bound

    def _has_room(self, purse: int, takes: Sequence[int], *, is_bound: bool) -> bool:
        state = zip(self._things.purses[purse], self._spent[purse], self._bound[purse], takes, strict=True)
        return not any(
            [amount and (is_bound or bound) and spent + amount > room for room, spent, bound, amount in state]
        )

    def result(self) -> list[int] | None:
        """Return what was taken without what turned out not to be needed, the most valuable of it first."""
        return sorted(self._kept()) if self.is_enough() else None

    def _kept(self) -> Iterator[int]:
        values = self._things.values
        for number in sorted(self._taken, key=lambda number: (-values[number], number)):
            without = [need + amount for need, amount in zip(self.needed, self._things.gives[number], strict=True)]
            if max(without) <= 0:
                self.needed = without
            else:
                yield number

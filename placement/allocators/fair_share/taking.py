"""Takes things greedily until they are enough: in ascending order of value, or those that give most first.

This finds an answer whenever giving back in the order of values would, and among 100,000 things in a fraction of a
second; ``fewest`` then improves on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop
from operator import add
from typing import NamedTuple

Purse = tuple[int, ...]
"""A joint cap, class by class, on what may be taken from the things that draw on it."""


class Giver(NamedTuple):
    """What all things that draw on the same purses have in common.

    Args:
        purses: the indexes of the purses.
        is_bound: whether the purses must have room for them. Unbound things use up their purses too, but only bound
            ones have to stay within them.
    """

    purses: tuple[int, ...] = ()
    is_bound: bool = True


@dataclass(frozen=True, slots=True)
class Things:
    """The things to choose from, column by column, and the needs they have to meet.

    Args:
        gives: how much each contributes to every need.
        takes: how much each takes out of its purses, by class.
        values: the value of each, in any unit.
        givers: the index of each one's giver. Ties go to the first giver.
        needed: the needs, all above 0.
        purses: the caps on what may be taken together.
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
    """Tell whether the purses of a thing have room for it when nothing else is taken."""
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
    """Take in ascending order of value and return what of it is needed; None if even everything is not enough."""
    taking = _Taking(things)
    queue = list(zip(things.values, things.givers, things.takes, range(len(things)), strict=True))
    heapify(queue)
    while queue and not taking.is_enough():
        taking.try_one(heappop(queue)[-1])
    return taking.result()


BySize = tuple[float, int, int, tuple[int, ...], int]
"""A sort key: how much a thing gives (negated), its value, its giver and what it takes; then its index."""


def largest_first(things: Things, numbers: Sequence[int]) -> list[int] | None:
    """Take the things that give most of the open needs first, ties by value; None as above."""
    taking = _Taking(things)
    while numbers and not taking.is_enough():
        open_needs = taking.open_needs()
        queue = by_size(things, numbers, taking.needed)
        heapify(queue)
        # A need that has been met no longer counts, so the rest have to be sorted anew.
        while queue and taking.open_needs() == open_needs:
            taking.try_one(heappop(queue)[-1])
        numbers = [entry[-1] for entry in queue]
    return taking.result()


def by_size(things: Things, numbers: Sequence[int], needed: Sequence[int]) -> list[BySize]:
    """Return the sort keys of these things by how much of the needs they meet."""
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
    """What has been taken so far, what is still needed, and how full the purses are."""

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
        """Take a thing if it helps and its purses have room. Purses only fill up: what is refused never fits later."""
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
        """Return what was taken, less whatever proves unnecessary, the most valuable of it first."""
        return sorted(self._kept()) if self.is_enough() else None

    def _kept(self) -> Iterator[int]:
        values = self._things.values
        for number in sorted(self._taken, key=lambda number: (-values[number], number)):
            without = [need + amount for need, amount in zip(self.needed, self._things.gives[number], strict=True)]
            if max(without) <= 0:
                self.needed = without
            else:
                yield number

"""Small counters packed into one integer, so that adding two sets of counts is one addition."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple


class Counter(NamedTuple):
    """A counter with a final value from ``least`` to ``most``. A saturating one sticks at ``most``."""

    most: int
    least: int
    saturates: bool = False


class Counters:
    """The layout of packed counters. Each has a spare bit, which adding ``offset`` sets if it exceeds its most.

    All fields are equally wide, so wide that the sum of all counters fits into one: it is the remainder of a state by
    the largest number of such a field.

    >>> pair = Counters([Counter(2, 2), Counter(1, 1, saturates=True)])
    >>> both = pair.units[0] + pair.units[1]
    >>> pair.value(pair.settled(both + both), 1), pair.settled(both + both + both)
    (1, None)
    >>> pair.total(both)
    2
    """

    def __init__(self, counters: Sequence[Counter]) -> None:
        self._counters = counters
        largest, together = max([0, *[one.most for one in counters]]), sum([one.most for one in counters])
        field = max(1 + largest.bit_length(), (1 + together).bit_length())
        self._field = (1 << field) - 1
        self._shifts = range(0, field * len(counters), field)
        self.units = [1 << shift for shift in self._shifts]
        self.states = prod([one.most + 1 for one in counters])
        """How many states there are."""
        self.offset = self.guard = 0
        self.forbids = 0
        """The spare bits of counters that must not exceed their most."""
        self.sticky = 0
        """The spare bits of saturating counters whose most is greater than 1."""
        self._sticky: list[tuple[int, int, int]] = []  # The spare bit, shift and most of each.
        for counter, shift in zip(counters, self._shifts, strict=True):
            width = counter.most.bit_length()
            self.offset |= ((1 << width) - 1 - counter.most) << shift
            spare = 1 << (shift + width)
            self.guard |= spare
            if not counter.saturates:
                self.forbids |= spare
            elif counter.most > 1:
                self.sticky |= spare
                self._sticky.append((spare, shift, counter.most))

    def value(self, state: int, index: int) -> int:
        """Return the value of a counter."""
        return state >> self._shifts[index] & self._field

    def total(self, state: int) -> int:
        """Return the sum of all counters."""
        return state % self._field

    def mask(self, indices: Sequence[int]) -> int:
        """Return the bits of these counters: all are 0 in a state if and only if these counters are."""
        return sum([self._field << self._shifts[index] for index in indices])

    def settled(self, state: int) -> int | None:
        """Clamp the saturating counters in the sum of two states; return None if another counter is too high."""
        too_high = (state + self.offset) & self.guard
        if too_high & self.forbids:
            return None
        return self.cut(state, too_high) if too_high else state

    def cut(self, state: int, too_high: int) -> int:
        """Set the saturating counters that exceed their most, given by their spare bits, back to it.

        ``state`` is the sum of two states. If none of these counters is in ``sticky``, all of them are 2 instead of 1,
        and this is just ``state - (too_high >> 1)``.
        """
        for spare, shift, most in self._sticky:
            if too_high & spare:
                state -= ((state >> shift & self._field) - most) << shift
        return state - ((too_high & ~self.sticky) >> 1)

    def floor(self, least: Sequence[int]) -> int:
        """Return what ``reaches`` takes: least values of the first counters, packed; all others may be 0."""
        return self.guard - sum([max(0, number) << shift for number, shift in zip(least, self._shifts, strict=False)])

    def reaches(self, state: int, floor: int) -> bool:
        """Tell whether every counter reaches its floor.

        >>> pair = Counters([Counter(2, 2), Counter(1, 1)])
        >>> [pair.reaches(state, pair.floor([1, 0])) for state in (pair.units[0], pair.units[1])]
        [True, False]
        """
        return (state + floor) & self.guard == self.guard

    def is_enough(self, state: int) -> bool:
        """Tell whether every counter has reached its least value."""
        return all([self.value(state, index) >= counter.least for index, counter in enumerate(self._counters)])

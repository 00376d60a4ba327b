"""Small counters packed into one integer, so that adding two sets of counts is one addition."""

from collections.abc import Sequence
from typing import NamedTuple


class Counter(NamedTuple):
    """A counter with a final value from ``least`` to ``most``. A saturating one sticks at ``most``."""

    most: int
    least: int
    saturates: bool = False


class Counters:
    """The layout of packed counters. Each has a spare bit, which adding ``offset`` sets if it exceeds its most.

    >>> pair = Counters([Counter(2, 2), Counter(1, 1, saturates=True)])
    >>> both = pair.units[0] + pair.units[1]
    >>> pair.value(pair.settled(both + both), 1), pair.settled(both + both + both)
    (1, None)
    """

    def __init__(self, counters: Sequence[Counter]) -> None:
        self._counters = counters
        self._shifts: list[int] = []
        self.units: list[int] = []
        self.offset = self.guard = 0
        self.forbids = 0
        """The spare bits of counters that must not exceed their most."""
        self._saturating: list[tuple[int, int, int, int]] = []  # The spare bit, shift, mask and most of each.
        shift = 0
        for counter in counters:
            width = counter.most.bit_length()
            self._shifts.append(shift)
            self.units.append(1 << shift)
            self.offset |= ((1 << width) - 1 - counter.most) << shift
            spare = 1 << (shift + width)
            self.guard |= spare
            if counter.saturates:
                self._saturating.append((spare, shift, (2 << width) - 1, counter.most))
            else:
                self.forbids |= spare
            shift += width + 1
        self._masks = [(2 << counter.most.bit_length()) - 1 for counter in counters]

    def value(self, state: int, index: int) -> int:
        """Return the value of a counter."""
        return state >> self._shifts[index] & self._masks[index]

    def total(self, state: int) -> int:
        """Return the sum of all counters."""
        return sum([state >> shift & mask for shift, mask in zip(self._shifts, self._masks, strict=True)])

    def mask(self, indices: Sequence[int]) -> int:
        """Return the bits of these counters: all are 0 in a state if and only if these counters are."""
        return sum([self._masks[index] << self._shifts[index] for index in indices])

    def settled(self, state: int) -> int | None:
        """Clamp the saturating counters in the sum of two states; return None if another counter is too high."""
        too_high = (state + self.offset) & self.guard
        if too_high & self.forbids:
            return None
        return self.cut(state, too_high) if too_high else state

    def cut(self, state: int, too_high: int) -> int:
        """Return a sum of two states in which some saturating counters are too high, by their spare bits, cut."""
        for spare, shift, mask, most in self._saturating:
            if too_high & spare:
                state -= ((state >> shift & mask) - most) << shift
        return state

    def floor(self, least: Sequence[int]) -> int:
        """Return the argument of ``reaches`` for least values of the first counters; all others may be 0."""
        wanted = [*least, *[0] * (len(self._counters) - len(least))]
        widths = [counter.most.bit_length() for counter in self._counters]
        fields = zip(widths, wanted, self._shifts, strict=True)
        return sum([((1 << width) - max(0, least)) << shift for width, least, shift in fields])

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

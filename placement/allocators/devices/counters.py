"""Small counters packed into one integer, so that adding two sets of counts is one addition."""

from collections.abc import Sequence
from typing import NamedTuple


class Counter(NamedTuple):
    """One counter: it ends between ``least`` and ``most``. A saturating one stays at ``most`` instead of passing it."""

    most: int
    least: int
    saturates: bool = False


class Counters:
    """How counters are packed. Each has a spare bit, which adding ``offset`` sets where the counter is too high.

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
        """The spare bits of counters that must not be too high."""
        self._saturating: list[tuple[int, int, int, int]] = []  # For each its spare bit, shift, mask and most.
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
        """Return one counter."""
        return state >> self._shifts[index] & self._masks[index]

    def total(self, state: int) -> int:
        """Return the sum of all counters."""
        return sum([state >> shift & mask for shift, mask in zip(self._shifts, self._masks, strict=True)])

    def mask(self, indices: Sequence[int]) -> int:
        """Return the bits of some counters: a state has none of them where all these counters are 0."""
        return sum([self._masks[index] << self._shifts[index] for index in indices])

    def settled(self, state: int) -> int | None:
        """Return a sum of two states with saturated counters cut, or None if another counter is too high."""
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
        """Return what ``reaches`` compares with, of the least values of the first counters; others may be 0."""
        wanted = [*least, *[0] * (len(self._counters) - len(least))]
        widths = [counter.most.bit_length() for counter in self._counters]
        fields = zip(widths, wanted, self._shifts, strict=True)
        return sum([((1 << width) - max(0, least)) << shift for width, least, shift in fields])

    def reaches(self, state: int, floor: int) -> bool:
        """Tell whether no counter is below a floor.

        >>> pair = Counters([Counter(2, 2), Counter(1, 1)])
        >>> [pair.reaches(state, pair.floor([1, 0])) for state in (pair.units[0], pair.units[1])]
        [True, False]
        """
        return (state + floor) & self.guard == self.guard

    def is_enough(self, state: int) -> bool:
        """Tell whether every counter has reached its least value."""
        return all([self.value(state, index) >= counter.least for index, counter in enumerate(self._counters)])

"""A number of copies, as an interval."""

from typing import NamedTuple

ENDLESS = 2**62
"""The number of copies of something that takes nothing."""


class Copies(NamedTuple):
    """Bounds on a number of copies: ``least`` are known to fit, more than ``most`` cannot."""

    least: int
    most: int

    @property
    def is_exact(self) -> bool:
        """Whether the bounds meet."""
        return self.least == self.most


def exactly(copies: int) -> Copies:
    """Return a number that is known exactly."""
    return Copies(copies, copies)

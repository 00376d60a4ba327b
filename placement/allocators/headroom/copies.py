"""How many copies fit, as far as that is known."""

from typing import NamedTuple

ENDLESS = 2**62
"""So many copies fit where nothing is taken."""


class Copies(NamedTuple):
    """A number of copies between two bounds: ``least`` have been shown to fit, more than ``most`` cannot."""

    least: int
    most: int

    @property
    def is_exact(self) -> bool:
        """Whether the bounds meet."""
        return self.least == self.most


def exactly(copies: int) -> Copies:
    """Return a number that is known."""
    return Copies(copies, copies)

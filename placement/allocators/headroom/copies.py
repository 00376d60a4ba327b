"""How many copies fit, as far as that is known."""

from collections.abc import Iterable
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


def in_all(parts: Iterable[Copies]) -> Copies:
    """Return how many fit in several places that have nothing in common.

    >>> in_all([exactly(2), Copies(1, 3)])
    Copies(least=3, most=5)
    """
    known = list(parts)
    return Copies(sum([part.least for part in known]), sum([part.most for part in known]))

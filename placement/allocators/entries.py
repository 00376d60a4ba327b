"""Checks of the entries of a configuration: numbers, words, and the error that says which entry is wrong."""

import math
from collections.abc import Collection
from fractions import Fraction

Number = int | float | Fraction


class InvalidEntry(ValueError):
    """An entry is not what it has to be.

    Args:
        path: the keys that lead to the entry, from the object that was being made.
        expected: what should have been there.
        found: what was there.

    >>> str(InvalidEntry(("resources", "VCPU", "weight"), "a number from 0 up", -1))
    'resources.VCPU.weight: expected a number from 0 up, found -1'
    """

    def __init__(self, path: tuple[str, ...], expected: str, found: object) -> None:
        super().__init__(f"{'.'.join(path)}: expected {expected}, found {found!r}")
        self.path = path
        self.expected = expected
        self.found = found


LARGEST_NUMBER = 10**15
"""What is larger is no weight and no amount, and sums of such numbers overflow."""


def check_number(value: object, *path: str) -> None:
    """Refuse what is not a number from 0 to LARGEST_NUMBER; true and false are no numbers."""
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= 0):  # type: ignore[arg-type, operator]
        raise InvalidEntry(path, "a number from 0 up", value)
    if value > LARGEST_NUMBER:  # type: ignore[operator]
        raise InvalidEntry(path, f"a number up to {LARGEST_NUMBER}", value)


def check_word(value: object, words: Collection[str], *path: str) -> None:
    """Refuse what is not one of these words."""
    if value not in words:
        raise InvalidEntry(path, " or ".join(words), value)


def exact(value: Number) -> Fraction:
    """Return the number as it was written: 0.1 is one tenth, not the nearest binary fraction.

    >>> exact(0.1), exact(3)
    (Fraction(1, 10), Fraction(3, 1))
    """
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)

"""Validation of configuration entries: numbers, words, and an error that identifies the entry."""

import math
from collections.abc import Collection
from fractions import Fraction

Number = int | float | Fraction


class InvalidEntry(ValueError):
    """An entry of a configuration is invalid.

    Args:
        path: the keys that lead to the entry, from the object being built.
        expected: what it should have been.
        found: what it was.

    >>> str(InvalidEntry(("resources", "VCPU", "weight"), "a number from 0 up", -1))
    'resources.VCPU.weight: expected a number from 0 up, found -1'
    """

    def __init__(self, path: tuple[str, ...], expected: str, found: object) -> None:
        super().__init__(f"{'.'.join(path)}: expected {expected}, found {found!r}")
        self.path = path
        self.expected = expected
        self.found = found


MAX_NUMBER = 10**15
"""Anything larger is not a plausible weight or amount, and sums would overflow."""


def check_number(value: object, *path: str) -> None:
    """Refuse anything but a number from 0 to MAX_NUMBER; booleans do not count as numbers."""
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= 0):  # type: ignore[arg-type, operator]
        raise InvalidEntry(path, "a number from 0 up", value)
    if value > MAX_NUMBER:  # type: ignore[operator]
        raise InvalidEntry(path, f"a number up to {MAX_NUMBER}", value)


def check_word(value: object, words: Collection[str], *path: str) -> None:
    """Refuse anything but one of these words."""
    if value not in words:
        raise InvalidEntry(path, " or ".join(words), value)


def exact(value: Number) -> Fraction:
    """Return a number exactly as written: 0.1 is one tenth, not the nearest binary fraction.

    >>> exact(0.1), exact(3)
    (Fraction(1, 10), Fraction(3, 1))
    """
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)

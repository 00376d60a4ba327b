"""A part of a long list."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Row]):
    """Some rows of a list; ``total`` is None where there are too many to count."""

    rows: list[Row]
    has_more: bool
    total: int | None


def part_of(rows: list[Row], *, most: int, total: int | None) -> Excerpt[Row]:
    """Return a part from rows of which one more was read than are shown."""
    return Excerpt(rows[:most], len(rows) > most, total)

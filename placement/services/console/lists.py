"""Pages of long lists."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Row]):
    """Some rows of a list; ``total`` is None if there are too many to count."""

    rows: list[Row]
    has_more: bool
    total: int | None


def part_of(rows: list[Row], *, most: int, total: int | None) -> Excerpt[Row]:
    """Return a page, given one row more than it shows."""
    return Excerpt(rows[:most], len(rows) > most, total)

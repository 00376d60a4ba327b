"""Cursors: how far a reader has got in the journal, and the text form that clients store."""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

import orjson

from placement.errors import Invalid

BEFORE_ALL = -(2**62)
"""A mark below every row's: nothing has been seen."""
MAX_AHEAD = 30_000
"""The most ids in a cursor. Each becomes a parameter of a statement, of which SQLite takes 32,766."""


@dataclass(frozen=True, slots=True)
class SeenMarks:
    """Which transactions a reader has seen: those with a mark below ``end``, except for those that were still open.

    On MariaDB a mark is the number that a row got when it was first found committed, on SQLite its id; below ``end``
    nothing is open.
    """

    end: int = BEFORE_ALL
    still_open: tuple[int, ...] = ()

    @property
    def begin(self) -> int:
        """The lowest unseen mark."""
        return min(self.end, *self.still_open) if self.still_open else self.end

    def is_part_of(self, newer: "SeenMarks") -> bool:
        """Tell whether another reader has seen all that this one has.

        >>> SeenMarks(9, (4,)).is_part_of(SeenMarks(12, (4, 10))), SeenMarks(9, (4,)).is_part_of(SeenMarks(12, (5,)))
        (True, False)
        """
        missed = [mark for mark in newer.still_open if mark < self.end]
        return self.end <= newer.end and set(missed) <= set(self.still_open)


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a reader has got.

    Args:
        marks: what it has seen.
        portion: the snapshot that it is reading page by page, or None.
        last_id: the last row that it got of that portion.
        anchor: id, microseconds and mark of a row that existed; if that is gone, later ones may be gone as well.
        overlap: of the transactions that the anchor's may have overtaken, and itself, the lowest mark and how many have
            been seen; PostgreSQL only (order.py).
        ahead: ids of rows that a snapshot showed before they were numbered, ascending; MariaDB only.
        is_exact: whether the snapshot showed nothing but what counts as seen, unlike a standby's while transactions
            are open; not part of the text.
        triggers: the revision of the triggers that the snapshot showed (triggers.py); not part of the text.
    """

    marks: SeenMarks = SeenMarks()
    portion: SeenMarks | None = None
    last_id: int = 0
    anchor: tuple[int, ...] | None = None
    ahead: tuple[int, ...] = ()
    overlap: tuple[int, ...] | None = None
    is_exact: bool = True
    triggers: str | None = field(default=None, compare=False)

    def is_part_of(self, newer: "Cursor") -> bool:
        """Tell whether another reader of the tables themselves has seen all that this one has.

        >>> Cursor(SeenMarks(9), ahead=(3, 7)).is_part_of(Cursor(SeenMarks(9), ahead=(3, 5, 7)))
        True
        >>> Cursor(SeenMarks(9), ahead=(3, 7)).is_part_of(Cursor(SeenMarks(9), ahead=(3,)))
        False
        >>> Cursor(SeenMarks(9), ahead=(3, 7)).is_part_of(Cursor(SeenMarks(11)))  # all rows ahead have been numbered
        True
        """
        if self.ahead and self.marks.end == newer.marks.end:
            return set(self.ahead) <= set(newer.ahead)
        return self.marks.is_part_of(newer.marks)

    @property
    def text(self) -> str:
        """The text that clients store; opaque to them."""
        portion = None if self.portion is None else [self.portion.end, *self.portion.still_open]
        parts = [[self.marks.end, *self.marks.still_open], portion, self.last_id, self.anchor, self.ahead, self.overlap]
        return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


BEGINNING = Cursor()


def cursor_from(text: str) -> Cursor:
    """Return the cursor that a text encodes; ``0`` is the beginning. Invalid if it is none."""
    if text == "0":
        return BEGINNING
    try:
        return _cursor(orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    except (binascii.Error, ValueError, TypeError, LookupError) as error:
        raise Invalid(f"'{text[:100]}' is not a cursor of the journal.") from error


def _cursor(parts: Any) -> Cursor:
    marks, portion, last_id, anchor, ahead, *later = parts  # the first release's cursors end here
    (overlap,) = later or [None]
    if len(ahead) > MAX_AHEAD:
        raise ValueError(len(ahead))
    return Cursor(
        _marks(marks),
        None if portion is None else _marks(portion),
        _whole_numbers([last_id], 1)[0],
        None if anchor is None else _whole_numbers(anchor, 3),
        _whole_numbers(ahead, len(ahead)),
        None if overlap is None else _whole_numbers(overlap, 2),
    )


def _marks(parts: Any) -> SeenMarks:
    end, *still_open = _whole_numbers(parts, len(parts))
    return SeenMarks(end, tuple(still_open))


def _whole_numbers(parts: Any, count: int) -> tuple[int, ...]:
    if len(parts) != count or any(type(number) is not int or abs(number) > 2**63 - 1 for number in parts):
        raise ValueError(parts)
    return tuple(parts)

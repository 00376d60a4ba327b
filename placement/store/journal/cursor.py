"""Where a reader of the journal stands, and the text that clients keep of it."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import orjson

from placement.errors import Invalid

BEFORE_ALL = -(2**62)
"""A mark that every row's is above: nothing was seen."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Which transactions a reader has seen: those with a mark below ``end`` except for those that were still open.

    On MariaDB a mark is the number that the row was given when it was first found committed, on SQLite the row's id;
    nothing is open below them.
    """

    end: int = BEFORE_ALL
    still_open: tuple[int, ...] = ()

    @property
    def begin(self) -> int:
        """The lowest mark that was not seen."""
        return min(self.end, *self.still_open) if self.still_open else self.end

    def is_part_of(self, other: "Seen") -> bool:
        """Tell whether another reader has seen all that this one has.

        >>> Seen(9, (4,)).is_part_of(Seen(12, (4, 10))), Seen(9, (4,)).is_part_of(Seen(12, (5,)))
        (True, False)
        """
        missed = [mark for mark in other.still_open if mark < self.end]
        return self.end <= other.end and set(missed) <= set(self.still_open)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a reader stands.

    Args:
        seen: what it has seen.
        portion: what it is being given, portion by portion, or None.
        last_id: the last row of that portion it was given.
        anchor: id, microsecond and mark of a row that was there: where it is gone, so may be what came after it.
        ahead: ids of rows that a snapshot showed, and that have no number yet; MariaDB.
        is_exact: whether a snapshot showed nothing besides what counts as seen. A standby does where transactions are
            open; that is not kept in the text.
    """

    seen: Seen = Seen()
    portion: Seen | None = None
    last_id: int = 0
    anchor: tuple[int, ...] | None = None
    ahead: tuple[int, ...] = ()
    is_exact: bool = True

    @property
    def text(self) -> str:
        """What a client keeps of it; nobody else is to read it."""
        portion = None if self.portion is None else [self.portion.end, *self.portion.still_open]
        parts = [[self.seen.end, *self.seen.still_open], portion, self.last_id, self.anchor, self.ahead]
        return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


BEGINNING = Cursor()


def cursor_from(text: str) -> Cursor:
    """Return the cursor that a text tells of; ``0`` is the beginning.

    Raises:
        Invalid: it is none that this server made.
    """
    if text == "0":
        return BEGINNING
    try:
        return _cursor(orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    except (binascii.Error, ValueError, TypeError, LookupError) as error:
        raise Invalid(f"'{text[:100]}' is no cursor of the journal.") from error


def _cursor(parts: Any) -> Cursor:
    seen, portion, last_id, anchor, ahead = parts
    return Cursor(
        _seen(seen),
        None if portion is None else _seen(portion),
        _whole(last_id),
        None if anchor is None else tuple(map(_whole, anchor)),
        tuple(map(_whole, ahead)),
    )


def _seen(parts: Any) -> Seen:
    end, *still_open = map(_whole, parts)
    return Seen(end, tuple(still_open))


def _whole(number: Any) -> int:
    if type(number) is not int or abs(number) > 2**63 - 1:
        raise ValueError(number)
    return number

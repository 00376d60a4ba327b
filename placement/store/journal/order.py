"""The order in which readers see the journal: nothing that is committed late is ever missed.

Ids are assigned when a row is written, not when it is committed, so a reader that remembers only the highest id would
miss what a slower transaction commits under a lower one. What it remembers instead depends on the database:

* PostgreSQL: every row has its transaction's id, and a reader remembers which of them its snapshot could see. A dump or
  a standby may hold the highest of them and lack a lower one that was committed later. So a row also has the lowest id
  that was open when it was written: all below had ended, so whatever holds the row holds them. A reader counts the
  transactions from there on that it has seen; if there are fewer when it comes again, some were lost.
* SQLite: there is one writer at a time, so ids are in commit order.
* MariaDB, Galera: the first reader numbers the rows committed so far, in a transaction of its own; readers go by these
  numbers. A reader of the tables themselves, whose snapshot also shows rows without a number, remembers their ids.

Unseen rows come in id order. If a transaction saw another's change, its rows come after the other's: applied in the
order of reading, rows always lead from one true state to the next.

A cursor says how far a reader has got; clients store its text.
"""

import base64
import binascii
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    cast,
    extract,
    func,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
)

from placement.errors import Gone, Invalid
from placement.store.connection.database import Transaction
from placement.store.connection.statements import PreparedStatement
from placement.store.journal.triggers import REVISION_ON_POSTGRESQL, REVISION_ON_SQLITE, trigger_revision
from placement.store.tables import placement_journal

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


J = placement_journal.c
EPOCH = datetime(1970, 1, 1)
NUMBERED_AT_ONCE = 1000
SQLITE = "sqlite"
POSTGRESQL = "postgresql"

_ANCHOR = (J.id, J.time, J.commit_mark)
# A literal, so that the planner knows it is one row: a plain number would become a parameter.
_ONE_ROW = literal_column("1", Integer)
_HEAD = select(*_ANCHOR, J.oldest_open).where(J.commit_mark.is_not(None)).order_by(J.commit_mark.desc()).limit(_ONE_ROW)
_HEAD_ON_SQLITE = select(*_ANCHOR, REVISION_ON_SQLITE.label("revision")).order_by(J.id.desc()).limit(1)
_ROW = PreparedStatement(select(*_ANCHOR).where(J.id == bindparam("id")))
_UNNUMBERED = select(J.id).where(J.commit_mark.is_(None)).order_by(J.id).limit(NUMBERED_AT_ONCE)
_AHEAD = select(J.id).where(J.commit_mark.is_(None)).order_by(J.id)
_HIGHEST = select(func.coalesce(func.max(J.commit_mark), 0))
# The rows of a restored dump or a copy are marked with the transaction ids of another server.
_MAKE_OURS = text(
    "UPDATE placement_journal SET commit_mark = -commit_mark, oldest_open = NULL "
    "WHERE commit_mark > 0 AND xmin::text::bigint <> (commit_mark & 4294967295)"
)


class CursorGone(Gone):
    """The journal no longer holds what came after the cursor: begin anew, with what is there now."""


class NumberedMeanwhile(Exception):
    """Another transaction has numbered the same rows."""


class JournalOfAnother(Exception):
    """The journal holds transactions that this database server never ran: it was restored from a dump."""


def microseconds(utc: datetime) -> int:
    """Return a moment in microseconds since 1970."""
    return (utc - EPOCH) // timedelta(microseconds=1)


def now(tx: Transaction) -> Cursor:
    """Return the cursor of a reader that has read all ordered rows that this snapshot shows; see JournalOfAnother."""
    if tx.dialect == POSTGRESQL:
        for row in tx.tuples(_PLACE):
            return place_on_postgresql(PlaceRow(*row))
    elif head := tx.execute(_HEAD_ON_SQLITE if tx.dialect == SQLITE else _HEAD).first():
        end, triggers = (head.id, head.revision) if tx.dialect == SQLITE else (head.commit_mark, trigger_revision(tx))
        return Cursor(SeenMarks(end + 1), anchor=anchor(*head[:3]), triggers=triggers)
    return Cursor(triggers=trigger_revision(tx))


def anchor(id_: int, time: datetime, commit_mark: int | None) -> tuple[int, int, int]:
    """Return what a cursor remembers of a row."""
    return id_, microseconds(time), commit_mark or 0


def cursor_of(tx: Transaction) -> Cursor:
    """Return the cursor of a reader of the tables themselves, in this transaction's snapshot; see JournalOfAnother."""
    place = now(tx)
    if tx.dialect in {SQLITE, POSTGRESQL}:
        return place
    return replace(place, ahead=tuple(tx.execute(_AHEAD).scalars()))


def newest_rows(tx: Transaction) -> list[int]:
    """Return the ids of rows that cursors remember or count: the last one written, the last in order, what overlaps."""
    newest = _HEAD.subquery("newest").c
    last = select(func.max(J.id)).union_all(
        select(newest.id),
        select(func.min(J.id)).where(J.commit_mark >= newest.oldest_open, J.commit_mark < newest.commit_mark),
    )
    return [id_ for id_ in tx.execute(last).scalars() if id_ is not None]


class PlaceRow(NamedTuple):
    """What tells the cursor of a snapshot on PostgreSQL: its newest row, the time in microseconds, and its text.

    ``overlapping`` is the number of transactions seen from ``oldest_open`` on, ``triggers`` their revision.
    """

    id: int
    time: int
    mark: int
    oldest_open: int | None
    overlapping: int
    snapshot: str
    is_standby: bool
    triggers: str


def place_columns() -> list[ColumnElement[Any]]:
    """Return the columns of PlaceRow, of the one row that this gives."""
    newest, late = _HEAD.subquery("newest").c, placement_journal.alias("late").c
    snapshot = func.pg_current_snapshot()
    xmin = cast(cast(func.pg_snapshot_xmin(snapshot), Text), BigInteger)
    is_seen = or_(not_(func.pg_is_in_recovery()), late.commit_mark < xmin)  # as in _seen_on_postgresql
    # The newest transaction is counted without its rows, of which there may be thousands.
    overlapping = select(func.count(late.commit_mark.distinct())).where(
        late.commit_mark >= newest.oldest_open, late.commit_mark < newest.commit_mark, is_seen
    )
    is_newest_seen = or_(not_(func.pg_is_in_recovery()), newest.commit_mark < xmin)
    return [
        newest.id,
        microseconds_of(newest.time),
        newest.commit_mark,
        newest.oldest_open,
        overlapping.scalar_subquery() + case((is_newest_seen, 1), else_=0),
        cast(snapshot, Text),
        func.pg_is_in_recovery(),
        REVISION_ON_POSTGRESQL,
    ]


def microseconds_of(time: ColumnElement[Any]) -> ColumnElement[int]:
    """Return what ``microseconds`` does, on PostgreSQL."""
    return cast(extract("epoch", time) * literal_column("1000000"), BigInteger)


_PLACE = PreparedStatement(lambda: select(*place_columns()))


def place_on_postgresql(row: PlaceRow) -> Cursor:
    """Return the cursor of a snapshot; see JournalOfAnother. Above its end, a crash may have freed ids for others."""
    marks = _seen_on_postgresql(row.mark, row.snapshot, is_standby=row.is_standby)
    return Cursor(
        marks,
        anchor=(row.id, row.time, row.mark),
        overlap=None if row.oldest_open is None else (row.oldest_open, row.overlapping),
        is_exact=marks.end > row.mark,
        triggers=row.triggers,
    )


def _seen_on_postgresql(highest: int, snapshot: str, *, is_standby: bool) -> SeenMarks:
    lowest, end, still_open = snapshot.split(":")
    if highest >= int(end):
        raise JournalOfAnother
    if is_standby:
        # A standby's snapshot does not list open transactions; all below its xmin have ended.
        return SeenMarks(min(int(lowest), highest + 1))
    return SeenMarks(
        highest + 1, tuple(mark for mark in map(int, filter(None, still_open.split(","))) if mark <= highest)
    )


def verify(tx: Transaction, cursor: Cursor) -> None:
    """Raise CursorGone unless the row that a reader remembers still exists, and the transactions that it overtook.

    Pruning deletes it, a failover may lose some, and a restored backup or a copy may lack or replace them.
    """
    if cursor.anchor is None:
        if cursor.marks.end != BEFORE_ALL:
            raise CursorGone
        return
    place = tx.rows(_ROW, {"id": cursor.anchor[0]})
    if not place or anchor(*place[0]) != cursor.anchor or not _has_all_that_overlapped(tx, cursor):
        raise CursorGone


def _has_all_that_overlapped(tx: Transaction, cursor: Cursor) -> bool:
    if cursor.overlap is None:
        return True
    begin, transactions = cursor.overlap
    marks = cursor.portion or cursor.marks
    conditions = [J.commit_mark >= _number(begin), J.commit_mark < _number(marks.end)]
    if marks.still_open:
        conditions.append(J.commit_mark.not_in(map(_number, marks.still_open)))
    query = select(func.count(J.commit_mark.distinct())).where(*conditions)
    return bool(tx.execute(query).scalar_one() == transactions)


def unseen(tx: Transaction, marks: SeenMarks, portion: SeenMarks | None = None) -> ColumnElement[bool]:
    """Return the condition that a row is unseen and, if a portion is given, belongs to it."""
    mark = _mark(tx)
    # Literals instead of parameters: a generic plan would scan the whole journal.
    conditions = [mark >= _number(marks.begin)] if marks.end != BEFORE_ALL else []
    if marks.still_open:
        conditions.append(or_(mark >= _number(marks.end), mark.in_(map(_number, marks.still_open))))
    if portion is not None:
        conditions.append(mark < _number(portion.end))
        if portion.still_open:
            conditions.append(mark.not_in(map(_number, portion.still_open)))
    return and_(*(conditions or [true()]))


def unread(tx: Transaction, cursor: Cursor) -> ColumnElement[bool]:
    """Return the condition that a reader is yet to get a row that is committed; on MariaDB maybe without a number."""
    not_numbered = _mark(tx).is_(None)
    return and_(or_(unseen(tx, cursor.marks), not_numbered), not_ahead(cursor))


def not_ahead(cursor: Cursor) -> ColumnElement[bool]:
    """Return the condition that the snapshot from which a reader began did not show a row before it was numbered."""
    return J.id.not_in(cursor.ahead) if cursor.ahead else true()


def _number(number: int) -> ColumnElement[int]:
    return literal_column(str(int(number)), BigInteger)


def _mark(tx: Transaction) -> ColumnElement[int]:
    return J.id if tx.dialect == SQLITE else J.commit_mark


def number_rows(tx: Transaction) -> bool:
    """Give committed rows without a number the next ones; tell whether those were all. MariaDB only.

    Two such transactions never disagree: of two snapshots of one database, one contains the other, so both start with
    the same row. The slower one finds it numbered or fails certification, and tries again.
    """
    ids = list(tx.execute(_UNNUMBERED).scalars())
    if not ids:
        return True
    highest = tx.execute(_HIGHEST).scalar_one()
    inside = ",".join(map(str, ids))
    numbering = text(
        f"UPDATE placement_journal SET commit_mark = {highest} + FIELD(id, {inside}) "  # noqa: S608 - numbers
        f"WHERE id IN ({inside}) AND commit_mark IS NULL"
    )
    if tx.execute(numbering).rowcount != len(ids):
        raise NumberedMeanwhile
    return len(ids) < NUMBERED_AT_ONCE


def make_ours(tx: Transaction) -> None:
    """Mark the rows that came with a dump as older than all rows that this server wrote."""
    tx.execute(_MAKE_OURS)

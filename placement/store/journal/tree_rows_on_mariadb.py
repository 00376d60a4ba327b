"""Reads the same on MariaDB, where a snapshot also shows rows that have no number yet.

A reader has seen all rows with numbers below some, and those ahead of their numbers, which it remembers by id. Of two
snapshots of one database one contains the other, and whoever numbers rows has seen all lower numbers. So a row that is
new to a snapshot either has a higher number than the older one showed, or none, and is not ahead.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    bindparam,
    exists,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.completeness import trigger_revision
from placement.store.journal.cursor import BEFORE_ALL, Cursor
from placement.store.journal.order import J, now
from placement.store.journal.tree_row import (
    MARIADB,
    MAX_ROWS,
    NO_ROW,
    PLACE,
    NewRows,
    is_about_trees,
    rows_about_trees,
    word,
)
from placement.store.tables import placement_journal

MAX_UNNUMBERED = 5000
"""The most rows without numbers. A snapshot that shows more has no place until they are numbered."""

_ID, _TIME = 8, 9
"""The positions of a row's id and time, after what ``RowOfTree`` has."""

_BEFORE_ALL: ColumnElement[int] = literal_column(str(BEFORE_ALL), BigInteger)


def place_on_mariadb(tx: Transaction) -> Cursor | None:
    """Return the cursor of a snapshot; None if too many of its rows have no number.

    Its anchor also has the sum of the times of the rows ahead: after a failover, others may have taken their ids.
    """
    rows = tx.tuples(_AHEAD)
    if len(rows) > MAX_UNNUMBERED:
        return None
    place, times = now(tx), sum([time for _id, time in rows])
    return replace(place, anchor=(*(place.anchor or NO_ROW), times), ahead=tuple([id_ for id_, _time in rows]))


def new_rows_on_mariadb(tx: Transaction, since: Cursor) -> NewRows | None:
    """Return the rows that a cursor has not seen, and the cursor of the snapshot; None if that has none."""
    id_, time, mark, times = since.anchor or (*NO_ROW, 0)
    known = {"id": id_, "time": time, "mark": mark, "end": since.seen.end, "ahead": since.ahead, "known": since.ahead}
    rows = tx.tuples(_ROWS_AND_PLACE, known)
    found = next(number for number, row in enumerate(rows) if row[2] == PLACE)
    end, is_there, *still_ahead = rows.pop(found)[4:8]
    is_as_known = (is_there or mark == 0) and still_ahead == [len(since.ahead), times]
    place: Cursor | None
    if is_as_known and end == since.seen.end and len(rows) + len(since.ahead) <= MAX_UNNUMBERED:
        ahead = sorted([*since.ahead, *[row[_ID] for row in rows]])
        now_times = times + sum([row[_TIME] for row in rows])
        place = Cursor(
            since.seen, anchor=(id_, time, mark, now_times), ahead=tuple(ahead), triggers=trigger_revision(tx)
        )
    else:
        place = place_on_mariadb(tx)
    return None if place is None else NewRows(place, [row[:_ID] for row in rows] if is_as_known else None)


def _microseconds(time: Any) -> ColumnElement[int]:
    return func.timestampdiff(literal_column("MICROSECOND"), literal_column("'1970-01-01'"), time, type_=BigInteger)


def _rows_and_place() -> Executable:
    """Return the statement for new rows with their ids and times, and one for the place.

    The place is told by the end of the numbers, whether the anchor still exists, and the number of rows ahead that do,
    with the sum of their times.
    """
    # Two parameters: if one were empty in IN and in NOT IN alike, both would be true.
    of_ahead, of_known = (bindparam(name, expanding=True, type_=BigInteger) for name in ("ahead", "known"))
    numbered, ahead = placement_journal.alias("numbered").c, placement_journal.alias("ahead").c
    end = select(func.coalesce(func.max(numbered.commit_mark) + 1, _BEFORE_ALL)).scalar_subquery()
    is_there = exists().where(
        J.id == bindparam("id"), _microseconds(J.time) == bindparam("time"), J.commit_mark == bindparam("mark")
    )
    still = select(func.count()).where(ahead.id.in_(of_ahead)).scalar_subquery()
    times = select(func.coalesce(func.sum(_microseconds(ahead.time)), 0)).where(ahead.id.in_(of_ahead))
    place = select(null(), null(), word(PLACE), null(), end, is_there, still, times.scalar_subquery(), null(), null())
    is_new = (J.commit_mark >= bindparam("end")) | J.commit_mark.is_(None)
    rows = rows_about_trees(MARIADB).add_columns(J.id, _microseconds(J.time)).where(is_new, J.id.not_in(of_known))
    return union_all(place, rows.limit(MAX_ROWS))


_AHEAD = PreparedStatement(
    select(J.id, _microseconds(J.time))
    .where(J.commit_mark.is_(None), is_about_trees())
    .order_by(J.id)
    .limit(MAX_UNNUMBERED + 1)
)
_ROWS_AND_PLACE = PreparedStatement(_rows_and_place)

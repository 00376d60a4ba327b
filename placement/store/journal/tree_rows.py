"""Reads the journal rows about trees that one snapshot shows and an older one did not, and the snapshot's cursor.

On PostgreSQL one statement reads both under one generic plan: marks are bounded on both sides and come from
subqueries, so that a custom plan never looks cheaper; planning each time would take longer than execution. The text
changes whenever the journal has doubled, because the plan for a small one scans all of it. It may bring along what else
a request needs to know first, and spare it a statement: sending one takes longer than looking up an id.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Text,
    any_,
    bindparam,
    cast,
    exists,
    extract,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
)

from placement.store.connection.prepared import NO_VALUES, PreparedScalars, PreparedStatement, Values
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.completeness import REVISION_ON_POSTGRESQL, trigger_revision
from placement.store.journal.cursor import BEFORE_ALL, Cursor
from placement.store.journal.order import (
    HEAD_OF_ALL,
    POSTGRESQL,
    SQLITE,
    CursorGone,
    J,
    now,
    place_on_postgresql,
    verify,
)
from placement.store.journal.tree_row import MAX_ROWS, NO_ROW, NOTHING, PLACE, NewRows, rows_about_trees, word
from placement.store.journal.tree_rows_on_mariadb import new_rows_on_mariadb, place_on_mariadb
from placement.store.tables import placement_journal

_MAX_ROWS = literal_column(str(MAX_ROWS), Integer)
_HIGHEST = literal_column(str(2**63 - 1), BigInteger)


class Along(NamedTuple):
    """Scalars to read along, and their values, none of them named like one of the statement itself."""

    scalars: PreparedScalars
    values: Values


def may_read_along(tx: Transaction) -> bool:
    """Tell whether the journal is read by one statement, which can bring something along."""
    return tx.dialect == POSTGRESQL


_NOTHING_ALONG = Along(PreparedScalars(), NO_VALUES)


def needs_numbers(tx: Transaction, place: Cursor | None, *, most: int) -> bool:
    """Tell whether too many rows have no number: more than ``most``, or so many that a snapshot has no place."""
    if tx.dialect in {SQLITE, POSTGRESQL} or not tx.is_snapshot or not tx.database.keeps_journal:
        return False
    return place is None or len(place.ahead) > most


def place_of(tx: Transaction) -> Cursor | None:
    """Return the cursor of a snapshot, whatever it shows; None if it has none.

    Raises:
        JournalOfAnother: the marks must be corrected first.
    """
    return now(tx) if tx.dialect in {SQLITE, POSTGRESQL} else place_on_mariadb(tx)


def new_rows(tx: Transaction, since: Cursor, along: Along | None = None) -> NewRows | None:
    """Return the rows that a cursor has not seen; rows that were shown without counting as seen come again.

    None if the snapshot has no place.

    Raises:
        JournalOfAnother: the marks must be corrected first.
    """
    match tx.dialect:
        case "sqlite":
            found: NewRows | None = _on_sqlite(tx, since)
        case "postgresql":
            found = _on_postgresql(tx, since, along)
        case _:
            found = new_rows_on_mariadb(tx, since)
    if found and found.rows is not None and (len(found.rows) == MAX_ROWS or not since.is_part_of(found.place)):
        return found._replace(rows=None)
    return found


def _on_sqlite(tx: Transaction, since: Cursor) -> NewRows:
    place = now(tx)
    if since == place:
        return NewRows(place, ())
    try:
        verify(tx, since)
    except CursorGone:
        return NewRows(place, None)
    return NewRows(place, tx.tuples(_ROWS_ON_SQLITE, {"begin": since.seen.begin}))


def _on_postgresql(tx: Transaction, since: Cursor, along: Along | None) -> NewRows:
    seen, (id_, time, mark) = since.seen, since.anchor or NO_ROW
    scalars, values = along or _NOTHING_ALONG
    bounds = {"begin": seen.begin, "end": seen.end, "open": list(seen.still_open)}
    statement = _rows_and_place(scalars, doubled=id_.bit_length())
    rows = tx.tuples(statement, {**bounds, "id": id_, "time": time, "mark": mark, **values})
    found = next((number for number, row in enumerate(rows) if row[2] == PLACE), None)
    if found is None:
        return NewRows(Cursor(triggers=trigger_revision(tx)), () if since == Cursor() else None)
    id_, time, mark, snapshot, is_standby, triggers, is_there, *read_along = orjson.loads(rows.pop(found)[7])
    place = replace(place_on_postgresql((id_, time, mark), snapshot, is_standby=is_standby), triggers=triggers)
    return NewRows(place, rows if is_there or seen.end == BEFORE_ALL else None, read_along if along else None)


def _place(along: Sequence[ColumnElement[Any]]) -> Select[*tuple[Any, ...]]:
    """Return the query for one row of that form: the cursor, whether the anchor still exists, and further scalars."""
    newest, remembered = HEAD_OF_ALL.subquery("newest").c, placement_journal.alias("remembered").c
    is_there = exists().where(
        remembered.id == bindparam("id", type_=BigInteger),
        _microseconds(remembered.time) == bindparam("time", type_=BigInteger),
        remembered.commit_mark == bindparam("mark", type_=BigInteger),
    )
    head = newest.id, _microseconds(newest.time), newest.commit_mark
    snapshot = cast(func.pg_current_snapshot(), Text), func.pg_is_in_recovery(), REVISION_ON_POSTGRESQL
    place = func.json_build_array(*head, *snapshot, is_there, *along)
    return select(null(), null(), word(PLACE), null(), null(), null(), null(), cast(place, Text))


@lru_cache
def _rows_and_place(along: PreparedScalars, *, doubled: int) -> PreparedStatement:
    """Return the statement for a journal that has doubled this often."""
    begin, end = (select(bindparam(name, type_=BigInteger)).scalar_subquery() for name in ("begin", "end"))
    known_open = select(bindparam("open", type_=ARRAY(BigInteger))).scalar_subquery()
    still_open = J.commit_mark == any_(cast(known_open, ARRAY(BigInteger)))
    is_new = (J.commit_mark >= begin) & (J.commit_mark <= _HIGHEST) & or_(J.commit_mark >= end, still_open)
    of_this_size = literal_column(str(doubled), Integer) >= NOTHING
    rows = rows_about_trees(POSTGRESQL).where(is_new, of_this_size).limit(_MAX_ROWS)
    return PreparedStatement(union_all(_place(along.columns), rows))


def _microseconds(moment: ColumnElement[Any]) -> ColumnElement[int]:
    return cast(extract("epoch", moment) * literal_column("1000000"), BigInteger)


_ROWS_ON_SQLITE = PreparedStatement(
    rows_about_trees(SQLITE).where(J.id >= bindparam("begin", type_=BigInteger)).limit(_MAX_ROWS)
)

"""Reads the journal rows about trees that one snapshot shows and an older one did not, and the snapshot's cursor.

On PostgreSQL one statement reads both under one generic plan: marks are bounded on both sides and come from
subqueries, so that a custom plan never looks cheaper; planning each time would take longer than execution. The text
changes whenever the journal has doubled, because the plan for a small one scans all of it. It may bring along what else
a request needs to know first, and spare it a statement: sending one takes longer than looking up an id.
"""

from collections.abc import Sequence
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
    all_,
    and_,
    any_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
)

from placement.store.connection.prepared import NO_VALUES, PreparedScalars, PreparedStatement, Values
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.completeness import trigger_revision
from placement.store.journal.cursor import BEFORE_ALL, Cursor
from placement.store.journal.order import (
    POSTGRESQL,
    SQLITE,
    CursorGone,
    J,
    PlaceRow,
    microseconds_of,
    now,
    place_columns,
    place_on_postgresql,
    verify,
)
from placement.store.journal.tree_row import MAX_ROWS, NO_ROW, NOTHING, PLACE, NewRows, rows_about_trees, word
from placement.store.journal.tree_rows_on_mariadb import new_rows_on_mariadb, place_on_mariadb
from placement.store.tables import placement_journal

_MAX_ROWS = literal_column(str(MAX_ROWS), Integer)
_HIGHEST = literal_column(str(2**63 - 1), BigInteger)
_NOT_COUNTED = -1
"""The number of transactions that overlap with a row which does not tell: a former release wrote none down."""
_NO_OVERLAP = (2**63 - 1, _NOT_COUNTED)
_WIDTH = len(PlaceRow._fields)


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
            new: NewRows | None = _on_sqlite(tx, since)
        case "postgresql":
            new = _on_postgresql(tx, since, along)
        case _:
            new = new_rows_on_mariadb(tx, since)
    if new and new.rows is not None and (len(new.rows) == MAX_ROWS or not since.is_part_of(new.place)):
        return new._replace(rows=None)
    return new


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
    overlap, transactions = since.overlap or _NO_OVERLAP
    remembered = {"id": id_, "time": time, "mark": mark, "overlap": overlap, "transactions": transactions}
    rows = tx.tuples(_rows_and_place(scalars, doubled=id_.bit_length()), {**bounds, **remembered, **values})
    at = next((number for number, row in enumerate(rows) if row[2] == PLACE), None)
    if at is None:
        return NewRows(Cursor(triggers=trigger_revision(tx)), () if since == Cursor() else None)
    is_there, *shown = orjson.loads(rows.pop(at)[7])
    place = place_on_postgresql(PlaceRow(*shown[:_WIDTH]))
    return NewRows(place, rows if is_there or seen.end == BEFORE_ALL else None, shown[_WIDTH:] if along else None)


def _place(along: Sequence[ColumnElement[Any]]) -> Select[*tuple[Any, ...]]:
    """Return the query for one row of that form: whether what a cursor remembers is there, PlaceRow, and scalars."""
    remembered, late = placement_journal.alias("remembered").c, placement_journal.alias("overlapping").c
    # The sum keeps PostgreSQL from looking for the row by its mark, which thousands of others may have.
    is_there = exists().where(
        remembered.id == bindparam("id", type_=BigInteger),
        microseconds_of(remembered.time) == bindparam("time", type_=BigInteger),
        remembered.commit_mark + 0 == bindparam("mark", type_=BigInteger),
    )
    mark, is_seen = bindparam("mark", type_=BigInteger), late.commit_mark != all_(_given_open())
    # That of the remembered row is counted without its rows, of which there may be thousands.
    overlapping = select(func.count(late.commit_mark.distinct())).where(
        late.commit_mark >= _given("overlap"), late.commit_mark < func.least(_given("end"), _given("mark")), is_seen
    )
    of_remembered = case((and_(mark < _given("end"), mark != all_(_given_open())), 1), else_=0)
    transactions = bindparam("transactions", type_=BigInteger)
    is_whole = or_(transactions == _NOT_COUNTED, overlapping.scalar_subquery() + of_remembered == transactions)
    place = func.json_build_array(is_there & is_whole, *place_columns(), *along)
    return select(null(), null(), word(PLACE), null(), null(), null(), null(), cast(place, Text))


def _given(name: str) -> ColumnElement[int]:
    return select(bindparam(name, type_=BigInteger)).scalar_subquery()


def _given_open() -> ColumnElement[Any]:
    return cast(select(bindparam("open", type_=ARRAY(BigInteger))).scalar_subquery(), ARRAY(BigInteger))


@lru_cache
def _rows_and_place(along: PreparedScalars, *, doubled: int) -> PreparedStatement:
    """Return the statement for a journal that has doubled this often."""
    still_open = J.commit_mark == any_(_given_open())
    is_late = or_(J.commit_mark >= _given("end"), still_open)
    is_new = (J.commit_mark >= _given("begin")) & (J.commit_mark <= _HIGHEST) & is_late
    of_this_size = literal_column(str(doubled), Integer) >= NOTHING
    rows = rows_about_trees(POSTGRESQL).where(is_new, of_this_size).limit(_MAX_ROWS)
    return PreparedStatement(union_all(_place(along.columns), rows))


_ROWS_ON_SQLITE = PreparedStatement(
    rows_about_trees(SQLITE).where(J.id >= bindparam("begin", type_=BigInteger)).limit(_MAX_ROWS)
)

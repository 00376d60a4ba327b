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
    Executable,
    Integer,
    Select,
    String,
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
from placement.store.journal.triggers import trigger_revision
from placement.store.journal.watched import CHANGED, CONSUMER, GENERATION, MARK_KINDS, NAME_KINDS, PROVIDER
from placement.store.tables import placement_journal

MARIADB = "mysql"

MAX_ROWS = 60_000
"""The most to read."""

RowOfTree = Sequence[Any]
"""What a row says about a tree: its root; the root of another tree that may be affected; the kind; whether a request of
this server wrote it; the id of the class, trait or aggregate that it is about; the change in an amount of a class; the
provider; None.
"""

_ROOT_NOW = "SELECT root_provider_id FROM resource_providers WHERE id = placement_journal.resource_provider_id"
_OTHER_ROOT = {
    POSTGRESQL: f"CASE WHEN kind = '{PROVIDER}' THEN CAST(CAST(old_row AS json) ->> 'root_provider_id' AS integer) "
    f"WHEN request_id IS NULL THEN ({_ROOT_NOW}) END",
    MARIADB: f"CASE WHEN kind = '{PROVIDER}' THEN CAST(JSON_VALUE(old_row, '$.root_provider_id') AS SIGNED) "
    f"WHEN request_id IS NULL THEN ({_ROOT_NOW}) END",
    SQLITE: f"CASE kind WHEN '{PROVIDER}' THEN json_extract(old_row, '$.root_provider_id') END",
}
"""The root of the other tree: that of the tree which a provider has left by moving or being deleted.

Except on SQLite, which has one writer at a time, writers other than this server may write without locking the provider,
while it moves. Their row names the tree that it leaves, so its current root is looked up.
"""

_OF_NO_TREE = (CONSUMER, GENERATION)
"""Kinds of rows that leave every tree as it was."""

PLACE = "place"
"""Replaces the kind in a row that holds the snapshot's cursor."""

NO_ROW = (0, 0, 0)
"""The anchor of a reader that has seen nothing."""

NOTHING = literal_column("0", Integer)


class NewRows(NamedTuple):
    """What a snapshot shows of the journal.

    Args:
        place: its cursor.
        rows: those that an older one did not show; None if unknown.
        along: the scalars that were read along; None if none were.
    """

    place: Cursor
    rows: Sequence[RowOfTree] | None
    along: Sequence[Any] | None = None


def rows_about_trees(dialect: str) -> Select[*tuple[Any, ...]]:
    """Return the query for all rows about trees."""
    amounts = [func.coalesce(amount, NOTHING) for amount in (J.new_amount, J.old_amount)]
    return select(
        J.root_provider_id,
        literal_column(_OTHER_ROOT[dialect], Integer),
        J.kind,
        J.request_id.is_not(None),
        case((J.kind.in_([word(kind) for kind in MARK_KINDS]), J.object_id), else_=J.resource_class_id),
        amounts[0] - amounts[1],
        J.resource_provider_id,
        null(),
    ).where(is_about_trees())


def is_about_trees() -> ColumnElement[bool]:
    """Return the condition that a row is about a tree, or may be."""
    return J.kind.not_in([word(kind) for kind in _OF_NO_TREE]) & (
        # A class or trait that comes or goes is in no tree; one that is renamed may be in any.
        or_(J.kind.not_in([word(kind) for kind in NAME_KINDS]), J.action == word(CHANGED))
    )


def word(value: str) -> ColumnElement[str]:
    """Return a word as a literal, so that the query planner sees it."""
    return literal_column(f"'{value}'", String)


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
    rows = tx.tuples(_ROWS_AND_PLACE_ON_MARIADB, known)
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


def _statement_on_mariadb() -> Executable:
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
_ROWS_AND_PLACE_ON_MARIADB = PreparedStatement(_statement_on_mariadb)


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

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
    String,
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
from placement.store.journal.watched import (
    CHANGED,
    CONSUMER,
    GENERATION,
    NAME_KINDS,
    PROVIDER,
)
from placement.store.tables import placement_journal

MAX_ROWS = 60_000
"""The most to read."""

RowOfTree = Sequence[Any]
"""What a row says about a tree: its root; the root of another tree that may be affected; the kind; whether a request of
this server wrote it; the id of a class; the change in an amount of it; the old and new values as JSON, None on SQLite.
"""

_ROOT_NOW = "SELECT root_provider_id FROM resource_providers WHERE id = placement_journal.resource_provider_id"
_OTHER_ROOT = {
    False: f"CASE WHEN kind = '{PROVIDER}' THEN CAST(CAST(old_row AS json) ->> 'root_provider_id' AS integer) "
    f"WHEN request_id IS NULL THEN ({_ROOT_NOW}) END",
    True: f"CASE kind WHEN '{PROVIDER}' THEN json_extract(old_row, '$.root_provider_id') END",
}
"""The root of the other tree, by ``on_sqlite``: that of the tree which a provider has left by moving or being deleted.

On PostgreSQL, writers other than this server may write without locking the provider, while it moves. Their row names
the tree that it leaves, so its current root is looked up. SQLite has one writer at a time.
"""

_OF_NO_TREE = (CONSUMER, GENERATION)
"""Kinds of rows that leave every tree as it was."""

_PLACE = "place"
"""Replaces the kind in the row that holds the snapshot's cursor."""

_NO_ROW = (0, 0, 0)
"""The anchor of a reader that has seen nothing."""

_NOTHING = literal_column("0", Integer)
_MAX_ROWS = literal_column(str(MAX_ROWS), Integer)
_HIGHEST = literal_column(str(2**63 - 1), BigInteger)


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


class Along(NamedTuple):
    """Scalars to read along, and their values, none of them named like one of the statement itself."""

    scalars: PreparedScalars
    values: Values


def may_read_along(tx: Transaction) -> bool:
    """Tell whether the journal is read by one statement, which can bring something along."""
    return tx.dialect == POSTGRESQL


_NOTHING_ALONG = Along(PreparedScalars(), NO_VALUES)


def new_rows(tx: Transaction, since: Cursor, along: Along | None = None) -> NewRows:
    """Return the rows that a cursor has not seen; rows that were shown without counting as seen come again.

    Raises:
        JournalOfAnother: the marks must be corrected first.
    """
    found = _on_sqlite(tx, since) if tx.dialect == SQLITE else _on_postgresql(tx, since, along)
    if found.rows is not None and (len(found.rows) == MAX_ROWS or not since.seen.is_part_of(found.place.seen)):
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
    seen, (id_, time, mark) = since.seen, since.anchor or _NO_ROW
    scalars, values = along or _NOTHING_ALONG
    bounds = {"begin": seen.begin, "end": seen.end, "open": list(seen.still_open)}
    statement = _rows_and_place(scalars, doubled=id_.bit_length())
    rows = tx.tuples(statement, {**bounds, "id": id_, "time": time, "mark": mark, **values})
    found = next((number for number, row in enumerate(rows) if row[2] == _PLACE), None)
    if found is None:
        return NewRows(Cursor(), () if since == Cursor() else None)
    id_, time, mark, snapshot, is_standby, is_there, *read_along = orjson.loads(rows.pop(found)[6])
    place = place_on_postgresql((id_, time, mark), snapshot, is_standby=is_standby)
    return NewRows(place, rows if is_there or seen.end == BEFORE_ALL else None, read_along if along else None)


def _rows(*, on_sqlite: bool) -> Select[*tuple[Any, ...]]:
    """Return the query for all rows about trees."""
    amounts = [func.coalesce(amount, _NOTHING) for amount in (J.new_amount, J.old_amount)]
    return select(
        J.root_provider_id,
        literal_column(_OTHER_ROOT[on_sqlite], Integer),
        J.kind,
        J.request_id.is_not(None),
        J.resource_class_id,
        amounts[0] - amounts[1],
        # SQLite's JSON has at most 15 digits of a ratio.
        *([null(), null()] if on_sqlite else [J.old_row, J.new_row]),
    ).where(
        J.kind.not_in([_word(kind) for kind in _OF_NO_TREE]),
        # A class or trait that comes or goes is in no tree; one that is renamed may be in any.
        or_(J.kind.not_in([_word(kind) for kind in NAME_KINDS]), J.action == _word(CHANGED)),
    )


def _place(along: Sequence[ColumnElement[Any]]) -> Select[*tuple[Any, ...]]:
    """Return the query for one row of that form: the cursor, whether the anchor still exists, and further scalars."""
    newest, remembered = HEAD_OF_ALL.subquery("newest").c, placement_journal.alias("remembered").c
    is_there = exists().where(
        remembered.id == bindparam("id", type_=BigInteger),
        _microseconds(remembered.time) == bindparam("time", type_=BigInteger),
        remembered.commit_mark == bindparam("mark", type_=BigInteger),
    )
    head = newest.id, _microseconds(newest.time), newest.commit_mark
    snapshot = cast(func.pg_current_snapshot(), Text), func.pg_is_in_recovery()
    place = func.json_build_array(*head, *snapshot, is_there, *along)
    return select(null(), null(), _word(_PLACE), null(), null(), null(), cast(place, Text), null())


@lru_cache
def _rows_and_place(along: PreparedScalars, *, doubled: int) -> PreparedStatement:
    """Return the statement for a journal that has doubled this often."""
    begin, end = (select(bindparam(name, type_=BigInteger)).scalar_subquery() for name in ("begin", "end"))
    known_open = select(bindparam("open", type_=ARRAY(BigInteger))).scalar_subquery()
    still_open = J.commit_mark == any_(cast(known_open, ARRAY(BigInteger)))
    is_new = (J.commit_mark >= begin) & (J.commit_mark <= _HIGHEST) & or_(J.commit_mark >= end, still_open)
    of_this_size = literal_column(str(doubled), Integer) >= _NOTHING
    rows = _rows(on_sqlite=False).where(is_new, of_this_size).limit(_MAX_ROWS)
    return PreparedStatement(union_all(_place(along.columns), rows))


def _word(word: str) -> ColumnElement[str]:
    return literal_column(f"'{word}'", String)


def _microseconds(moment: ColumnElement[Any]) -> ColumnElement[int]:
    return cast(extract("epoch", moment) * literal_column("1000000"), BigInteger)


_ROWS_ON_SQLITE = PreparedStatement(
    _rows(on_sqlite=True).where(J.id >= bindparam("begin", type_=BigInteger)).limit(_MAX_ROWS)
)

"""Tells which trees have changed since a reader's last snapshot, so that caches need not read the whole cloud again.

On PostgreSQL one statement reads the new rows and the snapshot's cursor under one generic plan: marks are bounded on
both sides and come from subqueries, so that a custom plan never looks cheaper; planning each time would take longer
than execution. The text changes whenever the journal has doubled, because the plan for a small one scans all of it. It
may bring along what else a request needs to know first: sending a statement takes longer than looking up an id. On
MariaDB one statement reads the new rows together with those that the cursor remembers, which tell the new cursor.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import MappingProxyType
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

from placement.cloud.columns import UseStep
from placement.cloud.derived import MAX_CHANGED, CloudChanges
from placement.store.connection.database import Transaction
from placement.store.connection.statements import NO_VALUES, PreparedScalars, PreparedStatement, Values
from placement.store.journal.order import (
    BEFORE_ALL,
    POSTGRESQL,
    SQLITE,
    Cursor,
    CursorGone,
    J,
    JournalOfAnother,
    PlaceRow,
    SeenMarks,
    microseconds_of,
    now,
    place_columns,
    place_on_postgresql,
    verify,
)
from placement.store.journal.triggers import is_whole, trigger_revision
from placement.store.journal.watched import ALLOCATION, CHANGED, CONSUMER, GENERATION, MARK_KINDS, NAME_KINDS, PROVIDER
from placement.store.tables import placement_journal

MARIADB = "mysql"
MAX_ROWS = 60_000
MAX_UNNUMBERED = 5000
"""The most rows without numbers. A snapshot that shows more has no place until they are numbered."""

RowOfTree = Sequence[Any]
"""What a row says about a tree: its root; the root of another tree that may be affected; the kind; whether a request of
this server wrote it; the id of the class, trait or aggregate that it is about; the change in an amount of a class; the
provider; None, or a note about the row itself.
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

_PLACE = "place"
"""Replaces the kind in a row that holds the snapshot's cursor."""
_NO_ROW = (0, 0, 0)
"""The anchor of a reader that has seen nothing."""
_NO_STEPS: Mapping[int, Sequence[UseStep]] = MappingProxyType({})


class JournalLook(NamedTuple):
    """What a snapshot shows of the journal: its cursor, what has changed (None for everything), and scalars.

    ``uses``: changes in what is in use, by the id of the class, in any order; each counts once. ``unclear``: the roots
    of the trees whose providers or amounts have changed in other ways. Only this server's own allocations yield steps:
    it locks the provider before it writes, so that the journal row names the provider's actual tree. Rows of others
    count as changes to the tree that they name, and to the provider's current one.
    """

    place: Cursor
    changes: CloudChanges | None
    along: Sequence[Any] | None = None
    uses: Mapping[int, Sequence[UseStep]] = _NO_STEPS
    unclear: AbstractSet[int] = frozenset()


class NewRows(NamedTuple):
    """A snapshot's cursor, the rows that an older one did not show (None if unknown), and the scalars read along."""

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


def look(tx: Transaction, since: Cursor | None, along: Along | None = None) -> JournalLook | None:
    """Return what has changed between a reader's cursor and this snapshot; None without a usable journal.

    A writing transaction gets None: the cursor would advance past its own uncommitted rows. For a reader that has seen
    a newer snapshot than this one, everything has changed, and so it has where the triggers may have been missing in
    any transaction between the two (triggers.py): what follows the journal through here is never without a row.

    Before it has read anything, a reader has no cursor.
    """
    if not tx.is_snapshot or not tx.database.keeps_journal:
        return None
    try:
        if since is not None:
            new = new_rows(tx, since, along)
        else:
            new = None if (place := place_of(tx)) is None else NewRows(place, None)
    except JournalOfAnother:
        return None
    if new is None or not is_whole(tx, new.place.triggers):
        return None
    unknown = JournalLook(new.place, None, new.along)
    if since is None or new.rows is None or new.place.triggers != since.triggers:
        return unknown
    return _with_changes(unknown, new.rows, is_exact=since.is_exact)


def _with_changes(unknown: JournalLook, rows: Collection[RowOfTree], *, is_exact: bool) -> JournalLook:
    """Add the changes that rows record, unless too little is known, or too much."""
    roots = _roots(rows)
    # In no tree are a provider just created or about to be deleted, and the name of a class or trait. That name may be
    # in anything; what a provider holds always is in a tree.
    if len(roots) >= MAX_CHANGED or any(row[0] is None and row[2] != PROVIDER for row in rows):
        return unknown
    marks = {(PROVIDER, root) for root in _roots([row for row in rows if row[2] == PROVIDER])}
    marks |= {(kind, object_id) for _root, _root_left, kind, _is_ours, object_id, *_ in rows if kind in MARK_KINDS}
    if not is_exact:  # Rows shown without counting as seen come again: steps would be counted twice.
        return unknown._replace(changes=CloudChanges(roots, frozenset(marks)), unclear=roots)
    claims = [row for row in rows if row[3] and row[2] == ALLOCATION]
    uses = defaultdict[int, list[UseStep]](list)
    for root, _root_left, _kind, _is_ours, class_id, more, provider, _note in claims:
        uses[class_id].append(UseStep(root, provider, more))
    further = [row for row in rows if not (row[3] and row[2] == ALLOCATION)]
    unclear = _roots([row for row in further if row[2] not in MARK_KINDS])
    altered = _roots([*further, *[row for row in claims if row[5] < 0]])
    changes = CloudChanges(roots, frozenset(marks), roots - altered)
    return unknown._replace(changes=changes, uses=uses, unclear=unclear)


def _roots(rows: Collection[RowOfTree]) -> frozenset[int]:
    return frozenset([root for row in rows for root in row[:2] if root is not None])


def needs_numbers(tx: Transaction, place: Cursor | None, *, tolerated: int) -> bool:
    """Tell whether too many rows have no number: more than ``tolerated``, or so many that a snapshot has no place."""
    if tx.dialect in {SQLITE, POSTGRESQL} or not tx.is_snapshot or not tx.database.keeps_journal:
        return False
    return place is None or len(place.ahead) > tolerated


def place_of(tx: Transaction) -> Cursor | None:
    """Return the cursor of a snapshot, whatever it shows; None if it has none: too many of its rows have no number.

    On MariaDB its anchor also has the sum of the times of the rows ahead: after a failover, others may have taken their
    ids. See JournalOfAnother.
    """
    if tx.dialect in {SQLITE, POSTGRESQL}:
        return now(tx)
    rows = tx.tuples(_AHEAD)
    return None if len(rows) > MAX_UNNUMBERED else _with_ahead(now(tx), dict(rows))


def _with_ahead(place: Cursor, times: Mapping[int, int]) -> Cursor:
    """Return MariaDB's cursor of a snapshot, given that of its numbered rows, and the times of those ahead by id."""
    id_, time, mark, *_times = place.anchor or _NO_ROW
    anchor = (id_, time, mark, sum(times.values()))
    return Cursor(place.marks, anchor=anchor, ahead=tuple(sorted(times)), triggers=place.triggers)


def new_rows(tx: Transaction, since: Cursor, along: Along | None = None) -> NewRows | None:
    """Return the rows that a cursor has not seen, None if the snapshot has no place; see JournalOfAnother.

    Rows that were shown without counting as seen come again.
    """
    match tx.dialect:
        case "sqlite":
            new: NewRows | None = _on_sqlite(tx, since)
        case "postgresql":
            new = _on_postgresql(tx, since, along)
        case _:
            new = _on_mariadb(tx, since)
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
    return NewRows(place, tx.tuples(_ROWS_ON_SQLITE, {"begin": since.marks.begin}))


def _on_mariadb(tx: Transaction, since: Cursor) -> NewRows | None:
    id_, time, mark, times = since.anchor or (*_NO_ROW, 0)
    remembered = [id_, *since.ahead]
    rows = tx.tuples(_ROWS_ON_MARIADB, {"end": since.marks.end, "excluded": remembered, "remembered": remembered})
    evidence = {row_id: (row_mark, row_time) for *_row, row_id, row_mark, row_time in rows}
    new = [row[:8] for row in rows if not row[7]]
    # Of too many rows the rest, which may have no number, is not here; the place has to tell of all.
    is_there = len(new) < MAX_ROWS and (not mark or evidence.get(id_) == (mark, time))
    if not is_there or not evidence.keys() >= {*since.ahead} or times != sum([evidence[id_][1] for id_ in since.ahead]):
        place = place_of(tx)
        return None if place is None else NewRows(place, None)
    numbered = [(*marked, row_id) for row_id, marked in evidence.items() if marked[0]]
    mark, time, id_ = max(numbered, default=(mark, time, id_))
    marks = SeenMarks(mark + 1) if numbered else since.marks
    ahead = {row_id: row_time for row_id, (row_mark, row_time) in evidence.items() if not row_mark}
    if len(ahead) > MAX_UNNUMBERED:
        return None
    place = _with_ahead(Cursor(marks, anchor=(id_, time, mark), triggers=trigger_revision(tx)), ahead)
    return NewRows(place, new)


def _on_postgresql(tx: Transaction, since: Cursor, along: Along | None) -> NewRows:
    marks, (id_, time, mark) = since.marks, since.anchor or _NO_ROW
    scalars, values = along or _NOTHING_ALONG
    bounds = {"begin": marks.begin, "end": marks.end, "open": list(marks.still_open)}
    overlap, transactions = since.overlap or _NO_OVERLAP
    remembered = {"id": id_, "time": time, "mark": mark, "overlap": overlap, "transactions": transactions}
    rows = tx.tuples(_rows_and_place(scalars, doubled=id_.bit_length()), {**bounds, **remembered, **values})
    at = next((number for number, row in enumerate(rows) if row[2] == _PLACE), None)
    if at is None:
        return NewRows(Cursor(triggers=trigger_revision(tx)), () if since == Cursor() else None)
    is_there, *shown = orjson.loads(rows.pop(at)[7])
    width = len(PlaceRow._fields)
    place = place_on_postgresql(PlaceRow(*shown[:width]))
    return NewRows(place, rows if is_there or marks.end == BEFORE_ALL else None, shown[width:] if along else None)


_NOTHING = literal_column("0", Integer)
_NO_NOTE: ColumnElement[Any] = null()
_MAX_ROWS = literal_column(str(MAX_ROWS), Integer)
_HIGHEST = literal_column(str(2**63 - 1), BigInteger)
_NOT_COUNTED = -1
"""The number of transactions that overlap with a row which does not tell: a former release wrote none down."""
_NO_OVERLAP = (2**63 - 1, _NOT_COUNTED)
_NOTHING_ALONG = Along(PreparedScalars(), NO_VALUES)


def _words(*values: str) -> list[ColumnElement[str]]:
    """Return words as literals, so that the query planner sees them."""
    return [literal_column(f"'{value}'", String) for value in values]


_IS_ABOUT_TREES = J.kind.not_in(_words(CONSUMER, GENERATION)) & (
    # A class or trait that comes or goes is in no tree; one that is renamed may be in any.
    or_(J.kind.not_in(_words(*NAME_KINDS)), J.action.in_(_words(CHANGED)))
)


def _rows(dialect: str, note: ColumnElement[Any] = _NO_NOTE) -> Select[*tuple[Any, ...]]:
    amounts = [func.coalesce(amount, _NOTHING) for amount in (J.new_amount, J.old_amount)]
    return select(
        J.root_provider_id,
        literal_column(_OTHER_ROOT[dialect], Integer),
        J.kind,
        J.request_id.is_not(None),
        case((J.kind.in_(_words(*MARK_KINDS)), J.object_id), else_=J.resource_class_id),
        amounts[0] - amounts[1],
        J.resource_provider_id,
        note,
    )


def _place(along: Sequence[ColumnElement[Any]]) -> Select[*tuple[Any, ...]]:
    """Return the query for one row of that form: whether what a cursor remembers is there, PlaceRow, and scalars."""
    remembered, late = placement_journal.alias("remembered").c, placement_journal.alias("overlapping").c
    # The sum keeps PostgreSQL from looking for the row by its mark, which thousands of others may have.
    is_there = exists().where(
        remembered.id == bindparam("id", type_=BigInteger),
        microseconds_of(remembered.time) == bindparam("time", type_=BigInteger),
        remembered.commit_mark + 0 == bindparam("mark", type_=BigInteger),
    )
    mark, is_seen = bindparam("mark", type_=BigInteger), late.commit_mark != all_(_hidden_open())
    # That of the remembered row is counted without its rows, of which there may be thousands.
    overlapping = select(func.count(late.commit_mark.distinct())).where(
        late.commit_mark >= _hidden("overlap"), late.commit_mark < func.least(_hidden("end"), _hidden("mark")), is_seen
    )
    of_remembered = case((and_(mark < _hidden("end"), mark != all_(_hidden_open())), 1), else_=0)
    transactions = bindparam("transactions", type_=BigInteger)
    is_whole = or_(transactions == _NOT_COUNTED, overlapping.scalar_subquery() + of_remembered == transactions)
    place = func.json_build_array(is_there & is_whole, *place_columns(), *along)
    return select(null(), null(), *_words(_PLACE), null(), null(), null(), null(), cast(place, Text))


def _hidden(name: str) -> ColumnElement[int]:
    return select(bindparam(name, type_=BigInteger)).scalar_subquery()


def _hidden_open() -> ColumnElement[Any]:
    return cast(select(bindparam("open", type_=ARRAY(BigInteger))).scalar_subquery(), ARRAY(BigInteger))


@lru_cache
def _rows_and_place(along: PreparedScalars, *, doubled: int) -> PreparedStatement:
    """Return the statement for a journal that has doubled this often."""
    is_late = or_(J.commit_mark >= _hidden("end"), J.commit_mark == any_(_hidden_open()))
    is_new = (J.commit_mark >= _hidden("begin")) & (J.commit_mark <= _HIGHEST) & is_late
    of_this_size = literal_column(str(doubled), Integer) >= _NOTHING
    rows = _rows(POSTGRESQL).where(_IS_ABOUT_TREES, is_new, of_this_size).limit(_MAX_ROWS)
    return PreparedStatement(union_all(_place(along.columns), rows))


_ROWS_ON_SQLITE = PreparedStatement(
    _rows(SQLITE).where(_IS_ABOUT_TREES, J.id >= bindparam("begin", type_=BigInteger)).limit(_MAX_ROWS)
)


def _statement_on_mariadb() -> PreparedStatement:
    """Return the statement for new rows, and, with a note, for those that are remembered and the last in order."""
    # Two parameters: SQLAlchemy renders an expanding one only once.
    excluded, remembered = (bindparam(name, expanding=True, type_=BigInteger) for name in ("excluded", "remembered"))
    is_new = (J.commit_mark >= bindparam("end")) | J.commit_mark.is_(None)
    new, evidence = [_rows(MARIADB, note).add_columns(J.id, J.commit_mark, _TIME) for note in (_NO_NOTE, _NOTED)]
    return PreparedStatement(
        union_all(
            new.where(_IS_ABOUT_TREES, is_new, J.id.not_in(excluded)).limit(MAX_ROWS),
            evidence.where(J.id.in_(remembered)),
            evidence.where(J.commit_mark.is_not(None)).order_by(J.commit_mark.desc()).limit(1),
        )
    )


_NOTED = literal_column("1", Integer)
_TIME = func.timestampdiff(literal_column("MICROSECOND"), literal_column("'1970-01-01'"), J.time, type_=BigInteger)
_AHEAD = PreparedStatement(
    select(J.id, _TIME).where(J.commit_mark.is_(None), _IS_ABOUT_TREES).order_by(J.id).limit(MAX_UNNUMBERED + 1)
)
_ROWS_ON_MARIADB = _statement_on_mariadb()

"""Which trees have changed since somebody looked: what keeps a picture of a cloud current without reading it again."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
)

from placement.domain.inventory import Inventory
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.cursor import Cursor
from placement.store.journal.order import POSTGRESQL, SQLITE, CursorGone, J, JournalOfAnother, now, verify
from placement.store.journal.watched import (
    AGGREGATE,
    ALLOCATION,
    CHANGED,
    CONSUMER,
    GENERATION,
    INVENTORY,
    PROVIDER,
    TRAIT,
)

MOST_CHANGED = 20_000
"""Where so many trees have changed, everything is read again. A statement of SQLite has at most 32,766 values."""

MOST_ROWS = 3 * MOST_CHANGED
"""Where the journal has so many rows about it, likewise."""

_ROOT_BEFORE = {
    True: f"CASE kind WHEN '{PROVIDER}' THEN CAST(CAST(old_row AS json) ->> 'root_provider_id' AS integer) END",
    False: f"CASE kind WHEN '{PROVIDER}' THEN json_extract(old_row, '$.root_provider_id') END",
}
"""Of which tree a provider was before it moved or went, on PostgreSQL and on SQLite."""

_OF_NO_TREE = (CONSUMER, GENERATION)
"""Kinds of rows after which every tree has, and is, what it was."""

_OF_NO_SUM = (TRAIT, AGGREGATE)
"""Kinds of rows after which every tree has what it had."""

_STOCK_ROWS = (J.old_row, J.new_row)

SumStep = tuple[int, int, int, int]
"""The root of a tree, the id of a class, and by how much more of it the tree can give, and uses."""


class TreeChanges(NamedTuple):
    """What has changed from one snapshot to another.

    Only what this server wrote is told as steps. It locks the provider first, so that its row in the journal names the
    tree that the provider is in, and lets nobody take of what has no inventory; others may do otherwise.

    Args:
        roots: the roots of the trees of which something has changed.
        steps: what has become of their sums, in any order; each counts once.
        untold: the roots of those trees of which steps do not tell all.
    """

    roots: frozenset[int]
    steps: Sequence[SumStep] = ()
    untold: frozenset[int] = frozenset()


NO_CHANGES = TreeChanges(frozenset())


class TreesChanged(NamedTuple):
    """What a reader has to read again to know what a snapshot shows, and where it stands when it has.

    Args:
        place: its new place.
        roots: the roots of the trees of which something has changed; None for everything.
    """

    place: Cursor
    roots: frozenset[int] | None


def trees_changed(tx: Transaction, since: Cursor | None) -> TreesChanged | None:
    """Return what has changed in this snapshot for a reader who stands at a place; None where no journal tells.

    A transaction that writes is told nothing: its own rows, which others do not see yet, would be passed. Who has seen
    a newer snapshot than this one has to read everything.

    Args:
        tx: the snapshot.
        since: where the reader stands; None before it has read anything.
    """
    place = place_of(tx)
    if place is None:
        return None
    if since is None or not since.seen.is_part_of(place.seen):
        return TreesChanged(place, None)
    changes = changes_since(tx, since, place)
    return TreesChanged(place, None if changes is None else changes.roots)


def place_of(tx: Transaction) -> Cursor | None:
    """Return where a snapshot stands in the journal; None where no journal tells, and to a transaction that writes."""
    if not tx.is_snapshot or not tx.database.keeps_journal or tx.dialect not in {POSTGRESQL, SQLITE}:
        return None
    try:
        return now(tx)
    except JournalOfAnother:
        return None


def changes_since(tx: Transaction, since: Cursor, place: Cursor) -> TreeChanges | None:
    """Return what has changed up to a snapshot; None for everything.

    Args:
        tx: the snapshot.
        since: where it was seen before, by an older snapshot.
        place: where this one stands.
    """
    if (since.seen, since.anchor) == (place.seen, place.anchor):
        return NO_CHANGES
    try:
        verify(tx, since)
    except CursorGone:
        return None
    seen = since.seen
    statement = _changes(with_open=bool(seen.still_open), marked=tx.dialect == POSTGRESQL)
    bounds = {"begin": seen.begin, **({"end": seen.end, "open": list(seen.still_open)} if seen.still_open else {})}
    rows = tx.tuples(statement, bounds)
    named = {row[0] for row in rows}
    # A provider is in no tree when it has just been made and before it goes. What it has always is in one.
    if len(rows) == MOST_ROWS or (None in named and any(row[0] is None and row[2] != PROVIDER for row in rows)):
        return None
    # A row of a provider that has moved tells of two.
    roots = frozenset(named | {row[1] for row in rows}) - {None}
    if len(roots) >= MOST_CHANGED:
        return None
    # What was shown, but did not count as seen, comes again.
    return TreeChanges(roots, *_in_steps(rows)) if since.is_exact else TreeChanges(roots, untold=roots)


def _in_steps(rows: Collection[Sequence[Any]]) -> tuple[list[SumStep], frozenset[int]]:
    """Return what rows tell of sums, and the roots of the trees of which they do not tell enough."""
    steps, untold = [], set()
    for root, before, kind, class_id, used, old_row, new_row in rows:
        if used is not None:
            steps.append((root, class_id, 0, used))
        elif new_row is not None:
            steps.append((root, class_id, _capacity(new_row) - _capacity(old_row), 0))
        elif kind not in _OF_NO_SUM:
            untold |= {root, before}
    return steps, frozenset(untold - {None})


@lru_cache(maxsize=4096)
def _capacity(row: str) -> int:
    """Return the capacity of an inventory that the journal shows. Many are alike."""
    return Inventory(**orjson.loads(row)).capacity


@lru_cache
def _changes(*, with_open: bool, marked: bool) -> PreparedStatement:
    """Return the statement for what has changed; that some transactions were still open makes another one of it."""
    mark = J.commit_mark if marked else J.id
    # Numbers are written into the text: a plan that is made for any number would read the whole journal.
    begin, end = (bindparam(name, type_=BigInteger, literal_execute=True) for name in ("begin", "end"))
    before = literal_column(_ROOT_BEFORE[marked], Integer)
    used = case((_is_told(ALLOCATION), func.coalesce(J.new_amount, 0) - func.coalesce(J.old_amount, 0)))
    # SQLite writes no more than 15 digits of a ratio.
    shown = [case((_is_told(INVENTORY) & (J.action == CHANGED), row)) if marked else null() for row in _STOCK_ROWS]
    statement = select(J.root_provider_id, before, J.kind, J.resource_class_id, used, *shown)
    statement = statement.where(mark >= begin, *[J.kind != one for one in _OF_NO_TREE])
    if with_open:
        still_open = bindparam("open", type_=BigInteger, expanding=True, literal_execute=True)
        statement = statement.where(or_(mark >= end, mark.in_(still_open)))
    return PreparedStatement(statement.limit(MOST_ROWS))


def _is_told(kind: str) -> ColumnElement[bool]:
    """Return the condition that a row tells what becomes of sums."""
    return (J.kind == kind) & J.request_id.is_not(None)

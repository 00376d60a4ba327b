"""Which trees have changed since somebody looked: what keeps a picture of a cloud current without reading it again."""

from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from sqlalchemy import BigInteger, Integer, bindparam, literal_column, or_, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.cursor import Cursor
from placement.store.journal.order import POSTGRESQL, SQLITE, CursorGone, J, JournalOfAnother, now, verify
from placement.store.journal.watched import CONSUMER, GENERATION, PROVIDER

MOST_CHANGED = 20_000
"""Where more has changed, everything is read again. SQLite takes no more than 32,766 values in a statement."""

_ROOT_BEFORE = {
    True: f"CASE kind WHEN '{PROVIDER}' THEN CAST(CAST(old_row AS json) ->> 'root_provider_id' AS integer) END",
    False: f"CASE kind WHEN '{PROVIDER}' THEN json_extract(old_row, '$.root_provider_id') END",
}
"""Of which tree a provider was before it moved or went, on PostgreSQL and on SQLite."""

_OF_NO_TREE = (CONSUMER, GENERATION)
"""Kinds of rows after which every tree has, and is, what it was."""


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
    return TreesChanged(place, roots_changed(tx, since, place))


def place_of(tx: Transaction) -> Cursor | None:
    """Return where a snapshot stands in the journal; None where no journal tells, and to a transaction that writes."""
    if not tx.is_snapshot or not tx.database.keeps_journal or tx.dialect not in {POSTGRESQL, SQLITE}:
        return None
    try:
        return now(tx)
    except JournalOfAnother:
        return None


def roots_changed(tx: Transaction, since: Cursor, place: Cursor) -> frozenset[int] | None:
    """Return the roots of the trees of which something has changed up to a snapshot; None for everything.

    Args:
        tx: the snapshot.
        since: where it was seen before, by an older snapshot.
        place: where this one stands.
    """
    if (since.seen, since.anchor) == (place.seen, place.anchor):
        return frozenset()
    try:
        verify(tx, since)
    except CursorGone:
        return None
    seen = since.seen
    statement = _changes(with_open=bool(seen.still_open), marked=tx.dialect == POSTGRESQL)
    bounds = {"begin": seen.begin, **({"end": seen.end, "open": list(seen.still_open)} if seen.still_open else {})}
    rows = tx.tuples(statement, bounds)
    # A provider is in no tree when it has just been made and before it goes. What it has always is in one.
    if len(rows) == MOST_CHANGED or any(root is None and kind != PROVIDER for root, _before, kind in rows):
        return None
    roots = frozenset(chain.from_iterable(row[:2] for row in rows)) - {None}
    # A row of a provider that has moved tells of two.
    return roots if len(roots) <= MOST_CHANGED else None


@lru_cache
def _changes(*, with_open: bool, marked: bool) -> PreparedStatement:
    """Return the statement for what has changed; that some transactions were still open makes another one of it."""
    mark = J.commit_mark if marked else J.id
    # Numbers are written into the text: a plan that is made for any number would read the whole journal.
    begin, end = (bindparam(name, type_=BigInteger, literal_execute=True) for name in ("begin", "end"))
    before = literal_column(_ROOT_BEFORE[marked], Integer)
    statement = select(J.root_provider_id, before, J.kind).where(mark >= begin, *[J.kind != one for one in _OF_NO_TREE])
    if with_open:
        still_open = bindparam("open", type_=BigInteger, expanding=True, literal_execute=True)
        statement = statement.where(or_(mark >= end, mark.in_(still_open)))
    return PreparedStatement(statement.distinct().limit(MOST_CHANGED))

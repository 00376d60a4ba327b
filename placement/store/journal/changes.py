"""Which trees have changed since somebody looked: what keeps a picture of a cloud current without reading it again."""

from sqlalchemy import select

from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.cursor import Cursor
from placement.store.journal.order import POSTGRESQL, SQLITE, CursorGone, J, JournalOfAnother, now, unseen, verify
from placement.store.journal.watched import AGGREGATE, CONSUMER, GENERATION, PROVIDER

MOST_CHANGED = 256
"""Where more has changed, everything is read again."""

_OF_NO_TREE = (CONSUMER, GENERATION, AGGREGATE)
"""Kinds of rows after which every tree has what it had."""


def place_in_journal(tx: Transaction) -> Cursor | None:
    """Return where a reader stands that has seen what this snapshot shows; None where the journal cannot tell.

    To be asked before anything else is read. A transaction that writes has no such place: its own rows would be passed.
    """
    if not tx.is_snapshot or not tx.database.keeps_journal or tx.dialect not in {POSTGRESQL, SQLITE}:
        return None
    try:
        return now(tx)
    except JournalOfAnother:
        return None


def roots_changed_since(tx: Transaction, place: Cursor) -> set[int] | None:
    """Return the roots of the trees of which something has changed; None where that cannot be told, or too many are."""
    try:
        verify(tx, place)
    except CursorGone:
        return None
    changed = (
        select(J.root_provider_id, J.kind)
        .where(unseen(tx, place.seen), J.kind.not_in(_OF_NO_TREE))
        .distinct()
        .limit(MOST_CHANGED)
    )
    rows = tx.tuples(changed)
    # Where a provider is new, gone or elsewhere now, it matters to more trees than the row names.
    if len(rows) == MOST_CHANGED or any(root is None or kind == PROVIDER for root, kind in rows):
        return None
    return {root for root, _kind in rows}

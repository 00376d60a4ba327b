"""Delete journal rows older than the retention period, and the names that only they need, in bounded portions."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.order import J, newest_rows
from placement.store.tables import placement_former_names, placement_journal

ROWS_AT_ONCE = 1000

_OLDEST = select(J.id, J.time).order_by(J.id).limit(ROWS_AT_ONCE + 1)
_LOCK_OLDEST = select(J.id).order_by(J.id).limit(1).with_for_update()
_DELETE = delete(placement_journal).where(J.id <= bindparam("last"))
_DELETE_NAMES = delete(placement_former_names).where(placement_former_names.c.journal_id <= bindparam("last"))


class PrunedRows(NamedTuple):
    """What a transaction has deleted: how many rows, and the id of the oldest one that is left."""

    rows: int
    oldest: int


NOTHING = PrunedRows(0, 0)


def prune_some(tx: Transaction, before: datetime, *, oldest: int | None = None) -> PrunedRows:
    """Delete up to ROWS_AT_ONCE of the oldest rows from before a moment.

    The newest row is kept whatever its age: cursors refer to it, and numbering continues from it.

    Args:
        tx: the transaction; it waits for another one that does the same.
        before: the moment.
        oldest: the id of the oldest row that the previous portion left: if it is gone, somebody else deletes rows, and
            nothing is done.
    """
    kept = min(newest_rows(tx), default=0)
    tx.execute(_LOCK_OLDEST)
    rows = tx.execute(_OLDEST).all()
    if oldest is not None and rows and rows[0].id != oldest:
        return NOTHING
    old = [row.id for row in rows[:ROWS_AT_ONCE] if row.time < before and row.id < kept]
    if not old:
        return NOTHING
    tx.execute(_DELETE_NAMES, {"last": old[-1]})
    return PrunedRows(tx.execute(_DELETE, {"last": old[-1]}).rowcount, rows[len(old)].id)

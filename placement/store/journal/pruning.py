"""Delete journal rows older than the retention period, and the names that only they need, in bounded portions."""

from datetime import datetime

from sqlalchemy import bindparam, delete, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.order import J, newest_rows
from placement.store.tables import placement_former_names, placement_journal

ROWS_AT_ONCE = 1000

_OLDEST = select(J.id, J.time).order_by(J.id).limit(ROWS_AT_ONCE)
_DELETE = delete(placement_journal).where(J.id <= bindparam("last"))
_DELETE_NAMES = delete(placement_former_names).where(placement_former_names.c.journal_id <= bindparam("last"))


def prune_some(tx: Transaction, before: datetime) -> int:
    """Delete up to ROWS_AT_ONCE of the oldest rows from before a moment; return how many were deleted.

    The newest row is kept whatever its age: cursors refer to it, and numbering continues from it.
    """
    kept = min(newest_rows(tx), default=0)
    old = []
    for id_, moment in tx.execute(_OLDEST):
        if moment >= before or id_ >= kept:
            break
        old.append(id_)
    if not old:
        return 0
    tx.execute(_DELETE_NAMES, {"last": old[-1]})
    return tx.execute(_DELETE, {"last": old[-1]}).rowcount

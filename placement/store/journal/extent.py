"""The time from which the journal records every change, and how much it holds."""

from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import bindparam, delete, select

from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.order import J, newest_rows
from placement.store.journal.watched import BEGAN
from placement.store.tables import placement_former_names, placement_journal, utc_now


class _Searched(NamedTuple):
    """How far the journal has been searched: up to this row, and when it last began until then."""

    id: int
    time: datetime
    began: datetime | None


class JournalExtent(NamedTuple):
    """How much the journal holds, for monitoring.

    Args:
        rows: how many rows at most; no id is used twice, but some are never used.
        age_s: the age of the oldest row.
        lag_s: the age of the oldest row that readers cannot have yet: on MariaDB it has no number.
    """

    rows: int
    age_s: float
    lag_s: float


_searched: WeakKeyDictionary[Database, _Searched] = WeakKeyDictionary()
"""Rows that tell of a beginning are few and no index finds them, so only what is new is searched."""

_ROWS = select(J.id, J.time)
_UNNUMBERED = _ROWS.where(J.commit_mark.is_(None)).order_by(J.id).limit(1)


def complete_since(tx: Transaction) -> datetime | None:
    """Return that time, or None if the journal is empty."""
    # The first row's time is that of the oldest recorded change, unless the journal was interrupted and began again.
    first = tx.execute(_ROWS.order_by(J.id).limit(1)).first()
    newest = tx.execute(_ROWS.order_by(J.id.desc()).limit(1)).first()
    if first is None or newest is None:
        return None
    before = _searched.get(tx.database)
    if before and tx.execute(_ROWS.where(J.id == before.id, J.time == before.time)).first() is None:
        before = None  # pruned, or another journal
    again = select(J.time).where(J.action == BEGAN, J.id > (before.id if before else 0))
    began: datetime | None = tx.execute(again.order_by(J.id.desc()).limit(1)).scalar()
    if began is None and before:
        began = before.began
    _searched[tx.database] = _Searched(newest.id, newest.time, began)
    start: datetime = first.time
    return start if began is None else max(start, began)


def extent(tx: Transaction) -> JournalExtent:
    """Return how much the journal holds: three rows are read, whatever its size."""
    first = tx.execute(_ROWS.order_by(J.id).limit(1)).first()
    newest = tx.execute(_ROWS.order_by(J.id.desc()).limit(1)).first()
    if first is None or newest is None:
        return JournalExtent(0, 0.0, 0.0)
    late = tx.execute(_UNNUMBERED).first() if tx.dialect in ("mysql", "mariadb") else None
    return JournalExtent(newest.id - first.id + 1, _age_s(first.time), _age_s(late.time) if late else 0.0)


def _age_s(moment: datetime) -> float:
    return max(0.0, (utc_now() - moment).total_seconds())


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

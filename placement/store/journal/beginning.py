"""The time from which the journal records every change, and how much it holds."""

from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import select

from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.order import J
from placement.store.journal.watched import BEGAN
from placement.store.tables import utc_now


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

"""The time from which the journal records every change."""

from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import select

from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.order import J
from placement.store.journal.watched import BEGAN


class _Searched(NamedTuple):
    """How far the journal has been searched: up to this row, and when it last began until then."""

    id: int
    time: datetime
    began: datetime | None


_searched: WeakKeyDictionary[Database, _Searched] = WeakKeyDictionary()
"""Rows that tell of a beginning are few and no index finds them, so only what is new is searched."""

_ROWS = select(J.id, J.time)


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

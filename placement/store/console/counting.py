"""Count the rows of a list, as far as the exact number is of interest."""

from typing import Any

from sqlalchemy import Select, func, select

from placement.store.connection.unit_of_work import Transaction

COUNTED_MOST = 100_000
"""Counting stops here."""


def counted(tx: Transaction, rows: Select[Any]) -> int | None:
    """Return how many rows a query finds; None for COUNTED_MOST or more."""
    found = rows.limit(COUNTED_MOST).subquery("found")
    count = int(tx.execute(select(func.count()).select_from(found)).scalar_one())
    return count if count < COUNTED_MOST else None

"""The few statements that each database spells differently."""

from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from placement.store.connection.unit_of_work import Transaction


def insert_unless_exists(
    tx: Transaction, table: Table, values: dict[str, Any] | list[dict[str, Any]], *, key: str
) -> bool:
    """Insert rows, skipping those whose unique ``key`` exists already; tell whether any was inserted."""
    # Without preserve_rowcount SQLAlchemy discards an INSERT's row count, and with RETURNING it has none.
    insert = _insert_ignoring(tx.dialect, table, key).inline().execution_options(preserve_rowcount=True)
    return tx.execute(insert, values).rowcount > 0


def _insert_ignoring(dialect: str, table: Table, key: str) -> Insert:
    if dialect == "postgresql":
        return postgresql_insert(table).on_conflict_do_nothing(index_elements=[key])
    if dialect == "sqlite":
        return sqlite_insert(table).on_conflict_do_nothing(index_elements=[key])
    # IGNORE hides truncation as well, but values are validated before they get here. ON DUPLICATE KEY UPDATE would
    # count an existing row like a new one, because SQLAlchemy asks the driver for rows matched, not rows changed.
    return mysql_insert(table).prefix_with("IGNORE")

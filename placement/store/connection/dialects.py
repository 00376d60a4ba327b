"""The few statements that every kind of database spells its own way."""

from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from placement.store.connection.unit_of_work import Transaction


def insert_unless_exists(
    tx: Transaction, table: Table, values: dict[str, Any] | list[dict[str, Any]], *, key: str
) -> bool:
    """Insert rows, leaving out those whose unique ``key`` is there already; tell whether any was inserted."""
    # SQLAlchemy forgets how many rows an INSERT made unless told otherwise, and does not know it with RETURNING.
    insert = _insert_ignoring(tx.dialect, table, key).inline().execution_options(preserve_rowcount=True)
    return tx.execute(insert, values).rowcount > 0


def _insert_ignoring(dialect: str, table: Table, key: str) -> Insert:
    if dialect == "postgresql":
        return postgresql_insert(table).on_conflict_do_nothing(index_elements=[key])
    if dialect == "sqlite":
        return sqlite_insert(table).on_conflict_do_nothing(index_elements=[key])
    # IGNORE hides truncation too, but values are checked before they come here. ON DUPLICATE KEY UPDATE would count
    # the row that is there already like a new one, because SQLAlchemy asks the driver for rows found, not changed.
    return mysql_insert(table).prefix_with("IGNORE")

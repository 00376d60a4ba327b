"""Bring the standard resource classes and traits of the OpenStack libraries into their tables.

On every Placement database a class's id is its position in the library's list; traits are numbered as they come.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import os_resource_classes
import os_traits
from sqlalchemy import Connection, Insert, Table, select
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from placement.store.tables import resource_classes, traits


def has_standard_names(connection: Connection) -> bool:
    """Tell whether all standard names are present."""
    return set(os_resource_classes.STANDARDS) <= _names(connection, resource_classes) and (
        set(os_traits.get_traits()) <= _names(connection, traits)
    )


def sync_standard_names(connection: Connection) -> None:
    """Add missing standard names. Safe to run in several processes at once; nothing is written twice."""
    present = _names(connection, resource_classes)
    classes = [
        {"id": place, "name": name} for place, name in enumerate(os_resource_classes.STANDARDS) if name not in present
    ]
    with zero_is_an_id(connection):
        _insert(connection, resource_classes, classes)
    present = _names(connection, traits)
    _insert(connection, traits, [{"name": name} for name in sorted(os_traits.get_traits()) if name not in present])


def _names(connection: Connection, table: Table) -> set[str]:
    return set(connection.execute(select(table.c.name)).scalars())


def _insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_insert_ignoring(connection.dialect.name, table), rows)


def _insert_ignoring(dialect: str, table: Table) -> Insert:
    """Return an INSERT that skips rows whose id or name exists already."""
    if dialect == "postgresql":
        return postgresql_insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite_insert(table).on_conflict_do_nothing()
    return mysql_insert(table).on_duplicate_key_update(id=table.c.id)


@contextmanager
def zero_is_an_id(connection: Connection) -> Iterator[None]:
    """Let MariaDB store 0, the id of VCPU, which it otherwise takes as a request for the next number."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        yield
        return
    mode = connection.exec_driver_sql("SELECT @@SESSION.sql_mode").scalar_one()
    connection.exec_driver_sql("SET SESSION sql_mode = CONCAT(%s, ',NO_AUTO_VALUE_ON_ZERO')", (mode,))
    try:
        yield
    finally:
        connection.exec_driver_sql("SET SESSION sql_mode = %s", (mode,))

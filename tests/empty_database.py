"""Empties a database of the placement schema by SQL, as fast as possible, while a server is using it.

Standard traits and resource classes stay. Works for this project's databases and for the reference's.
"""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pymysql

# References are deleted before their targets; allocations while the kept usages are still there for their triggers; the
# journal last, because of triggers that tell of deletions.
TABLES = (
    "allocations",
    "provider_usages",
    "planner_claims",
    "learnt_work",
    "drained_inventories",
    "consumers",
    "consumer_types",
    "projects",
    "users",
    "inventories",
    "resource_provider_traits",
    "resource_provider_aggregates",
    "placement_aggregates",
    "resource_providers",
    "placement_former_names",
    "placement_journal",
)
CUSTOM_NAMES = ("traits", "resource_classes")
OF_JOURNAL = TABLES[-2:]
JOURNAL = "placement_journal"
"""The table that starts with rows: changes before them are not reported."""


def empty_database(url: str) -> None:
    """Delete every row except the standard names from a database."""
    if url.startswith("sqlite"):
        _empty_sqlite(sqlite_path(url))
    elif url.startswith("mysql"):
        _empty_mariadb(url)
    else:
        with psycopg.connect(_libpq(url), autocommit=False) as connection:
            present = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            _delete_rows(connection.execute, {name for (name,) in present})


def sqlite_path(url: str) -> Path:
    """Return the file of a SQLite URL."""
    return Path(urlsplit(url).path[1:])


def _empty_sqlite(path: Path) -> None:
    connection = sqlite3.connect(path, timeout=30)
    try:
        present = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        with connection:
            _delete_rows(connection.execute, {name for (name,) in present.fetchall()})
    finally:
        connection.close()


def _empty_mariadb(url: str) -> None:
    address = urlsplit(url)
    name, socket = address.path[1:], parse_qs(address.query)["unix_socket"][0]
    connection = pymysql.connect(unix_socket=socket, user=address.username, database=name)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            present = {table for (table,) in cursor.fetchall()}
            # A provider refers to its root, often itself.
            cursor.execute("SET FOREIGN_KEY_CHECKS = 0")
            _delete_rows(cursor.execute, present)
        connection.commit()
    finally:
        connection.close()


def _delete_rows(execute: Callable[[str], object], present: Iterable[str]) -> None:
    statements = {table: f"DELETE FROM {table}" for table in TABLES if table in present}
    custom = [f"DELETE FROM {table} WHERE substr(name, 1, 7) = 'CUSTOM_'" for table in CUSTOM_NAMES]
    last = [statements.pop(table) for table in OF_JOURNAL if table in present]
    for statement in (*statements.values(), *custom, *last):
        execute(statement)


def _libpq(url: str) -> str:
    """Return the URL without a driver's name, as libpq requires."""
    scheme, rest = url.split("://", 1)
    return f"{scheme.split('+')[0]}://{rest}"

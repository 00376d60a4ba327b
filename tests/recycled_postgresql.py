"""PostgreSQL databases that tests use one after the other. A test cannot tell that its database is not new.

A returned database is renamed, so that nobody reaches it by the old URL. It is emptied and compared with its original
state: the catalogue, the remaining rows, the settings. If anything differs, it is dropped.
"""

import itertools

import psycopg

from tests.databases import Pool, migrate
from tests.empty_database import CUSTOM_NAMES, JOURNAL, TABLES
from tests.postgresql import PostgreSQL

TEMPLATE = "template_placement"
MAX_GROWTH_BYTES = 4_000_000
"""Deleting more rows takes longer than creating a database, and its tables would stay large."""

# Schema changes write rows here, as the ids of the writing transactions show. Each with the column of its object.
CATALOGUES = {
    "pg_attrdef": "adrelid",
    "pg_attribute": "attrelid",
    "pg_constraint": "oid",
    "pg_event_trigger": "oid",
    "pg_index": "indrelid",
    "pg_namespace": "oid",
    "pg_policy": "oid",
    "pg_proc": "oid",
    "pg_rewrite": "oid",
    "pg_sequence": "seqrelid",
    "pg_statistic_ext": "oid",
    "pg_trigger": "oid",
    "pg_type": "oid",
}
FIRST_OID_OF_USERS = 16384

# pg_class is written for many reasons, VACUUM among them, so its contents are compared.
RELATIONS = f"""
SELECT 'relations', count(*), sum(hashtextextended(concat_ws(
    ' ', oid, relname, relkind, relnatts, relchecks, relhastriggers, relrowsecurity, relpersistence, relacl, reloptions
), 0)) FROM pg_class WHERE oid >= {FIRST_OID_OF_USERS} AND relkind <> 't'"""
_EMPTIED = "ANY(ARRAY[{}]::regclass[])".format(", ".join(f"'{table}'" for table in TABLES))
STATISTICS = f"SELECT 'statistics', count(*), 0 FROM pg_statistic WHERE starelid = {_EMPTIED}"
SETTINGS = """
SELECT 'settings', count(*), 0 FROM pg_db_role_setting JOIN pg_database ON setdatabase = pg_database.oid
WHERE datname = current_database()"""
SEQUENCES = """
SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value), last_value IS NOT NULL
FROM pg_sequences"""
DELETIONS = ";".join(
    [
        *[f"DELETE FROM {table}" for table in TABLES if table != JOURNAL],
        *[f"DELETE FROM {table} WHERE starts_with(name, 'CUSTOM_')" for table in CUSTOM_NAMES],
    ]
)


def postgresql_pool(server: PostgreSQL) -> Pool:
    """Return a pool of databases on a server."""
    databases = _Databases(server)
    return Pool(databases.make, databases.renew)


class _Databases:
    def __init__(self, server: PostgreSQL) -> None:
        self._server = server
        self._numbers = itertools.count()
        template = server.database(TEMPLATE)
        migrate(template)
        with psycopg.connect(template) as connection:
            self._sequences = connection.execute(SEQUENCES).fetchall()
            self._state_query = _state_query(connection)
            self._pristine = self._state(connection)
            self._largest_bytes = _size(connection) + MAX_GROWTH_BYTES
            (self._journal_began,) = connection.execute(f"SELECT max(id) FROM {JOURNAL}").fetchone()

    def make(self) -> str:
        return self._server.database(self._new_name(), template=TEMPLATE)

    def renew(self, url: str) -> str | None:
        name = self._new_name()
        url = self._server.rename(url, name)
        with psycopg.connect(url) as connection:
            usable = self._is_emptied(connection)
        if not usable:
            self._server.drop(name)
        return url if usable else None

    def _new_name(self) -> str:
        return f"copy_{next(self._numbers)}"

    def _is_emptied(self, connection: psycopg.Connection) -> bool:
        """Delete the rows of tests; return whether everything is in its original state."""
        try:
            if _size(connection) > self._largest_bytes:
                return False
            connection.execute("SET session_replication_role = replica")  # no triggers; any order of the tables
            connection.execute(DELETIONS)
            connection.execute(f"DELETE FROM {JOURNAL} WHERE id > %s", [self._journal_began])
            connection.cursor().executemany("SELECT setval(%s, %s, %s)", self._sequences)
            connection.commit()
            return self._state(connection) == self._pristine
        except psycopg.Error:  # something is missing, or must not be written
            return False

    def _state(self, connection: psycopg.Connection) -> list[tuple[object, ...]]:
        return connection.execute(self._state_query).fetchall()


def _size(connection: psycopg.Connection) -> int:
    (size,) = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return size


def _state_query(connection: psycopg.Connection) -> str:
    """Return the statement that describes the state that emptying a database does not change, one line per subject."""
    tables = {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    written = [
        f"SELECT '{name}', count(*), sum(xmin::text::bigint) FROM {name} WHERE {subject} >= {FIRST_OID_OF_USERS}"
        for name, subject in CATALOGUES.items()
    ]
    rows = [
        f"SELECT '{name}', count(*), sum(hashtextextended(kept::text, 0)) FROM public.{name} AS kept"
        for name in sorted(tables - {*TABLES} | {JOURNAL})
    ]
    return " UNION ALL ".join([*written, *rows, RELATIONS, STATISTICS, SETTINGS])

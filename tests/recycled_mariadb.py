"""MariaDB databases that tests use one after the other. A test can tell only by its name that its database is not new.

A returned database is emptied and compared with its original state: the definitions of tables and triggers, and the
remaining rows. If anything differs, it is dropped.
"""

import itertools
from urllib.parse import urlsplit

import pymysql
from pymysql.cursors import Cursor

from tests.databases import Pool, migrate
from tests.empty_database import CUSTOM_NAMES, JOURNAL, OF_JOURNAL, TABLES
from tests.mariadb import MariaDB

UNCOUNTED = ("provider_usages", "learnt_work", "placement_former_names")
COUNTED = [*(table for table in TABLES if table not in UNCOUNTED), *CUSTOM_NAMES]
EMPTYING = (
    "SET FOREIGN_KEY_CHECKS = 0",
    *[f"DELETE FROM {table}" for table in TABLES if table not in OF_JOURNAL],
    *[f"DELETE FROM {table} WHERE name LIKE 'CUSTOM\\_%'" for table in CUSTOM_NAMES],
    "DELETE FROM placement_former_names",
    f"DELETE FROM {JOURNAL} WHERE id > {{journal_began}}",
    "COMMIT",
    *[f"ALTER TABLE {table} AUTO_INCREMENT = 1" for table in COUNTED],
)
TRIGGERS = """
SELECT trigger_name, event_object_table, event_manipulation, action_timing, action_statement
FROM information_schema.triggers WHERE trigger_schema = DATABASE() ORDER BY 1"""
ROUTINES = "SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() ORDER BY 1"
NAME_RULES = "SELECT @@character_set_database, @@collation_database"


def mariadb_pool(server: MariaDB) -> Pool:
    """Return a pool of databases on a server."""
    databases = _Databases(server)
    return Pool(databases.make, databases.renew)


class _Databases:
    def __init__(self, server: MariaDB) -> None:
        self._server = server
        self._numbers = itertools.count()
        self._pristine: dict[str, object] = {}
        self._journal_began: dict[str, int] = {}

    def make(self) -> str:
        url = self._server.database(f"migrated_{next(self._numbers)}")
        migrate(url)
        with self._server.cursor(_name(url)) as cursor:
            self._pristine[url] = _state(cursor)
            ((self._journal_began[url],),) = _answer(cursor, f"SELECT max(id) FROM {JOURNAL}")
        return url

    def renew(self, url: str) -> str | None:
        name = _name(url)
        self._server.cut_off(name)
        if self._is_emptied(url):
            return url
        self._server.drop(name)
        return None

    def _is_emptied(self, url: str) -> bool:
        """Delete the rows of tests; return whether everything is in its original state."""
        try:
            with self._server.cursor(_name(url)) as cursor:
                for statement in EMPTYING:
                    cursor.execute(statement.replace("{journal_began}", str(self._journal_began[url])))
                return _state(cursor) == self._pristine[url]
        except pymysql.Error:  # a table is missing
            return False


def _name(url: str) -> str:
    return urlsplit(url).path[1:]


def _state(cursor: Cursor) -> list[object]:
    """Return the state that emptying a database does not change."""
    cursor.execute("SHOW FULL TABLES")
    tables = [name for name, _ in cursor.fetchall()]
    definitions = [_answer(cursor, f"SHOW CREATE TABLE {table}") for table in tables]
    rows = _answer(cursor, f"CHECKSUM TABLE {', '.join({*tables} - {*TABLES} | {JOURNAL})} EXTENDED")
    about = [_answer(cursor, query) for query in (TRIGGERS, ROUTINES, NAME_RULES)]
    return [definitions, sorted((table.partition(".")[2], checksum) for table, checksum in rows), about]


def _answer(cursor: Cursor, query: str) -> list[tuple[object, ...]]:
    cursor.execute(query)
    return list(cursor.fetchall())

"""Fresh databases for tests, copied from a template that is migrated once for each test process."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

from placement.store.connection.database import Database, engine_for
from placement.store.connection.url import normalised
from placement.store.lifecycle import schema
from placement.store.lifecycle.reference_schema import HEAD
from tests.empty_database import CUSTOM_NAMES, TABLES
from tests.mariadb import MariaDB
from tests.postgresql import PostgreSQL

TEMPLATE = "template_placement"


def open_database(url: str) -> Database:
    """Return a database to work on through the store. SQLite does not wait for the disk."""
    return Database(engine_for(normalised(url), sqlite_synchronous=False))


def migrate(url: str) -> None:
    """Make the schema and the standard names in an empty database."""
    database = open_database(url)
    schema.upgrade(database.engine)
    database.dispose()


class SQLiteDatabases:
    """Makes databases as files; ``template`` is a migrated one."""

    def __init__(self, directory: Path) -> None:
        self.template = directory / "template.sqlite"
        migrate(f"sqlite:///{self.template}")

    def copy(self, directory: Path) -> str:
        """Return the URL of a migrated database without data."""
        path = directory / "placement.sqlite"
        shutil.copy(self.template, path)
        return f"sqlite:///{path}"


class PostgreSQLDatabases:
    """Makes databases on a PostgreSQL server."""

    def __init__(self, server: PostgreSQL) -> None:
        self._server = server
        self._numbers = itertools.count()
        migrate(server.database(TEMPLATE))

    def copy(self) -> tuple[str, Callable[[], None]]:
        """Return the URL of a migrated database without data, and what deletes it."""
        name = f"copy_{next(self._numbers)}"
        return self._server.database(name, template=TEMPLATE), lambda: self._server.drop(name)


class MariaDBDatabases:
    """Makes databases on a MariaDB server, which cannot copy one: they are emptied and used again."""

    def __init__(self, server: MariaDB) -> None:
        self._server = server
        self._numbers = itertools.count()
        self._free: list[tuple[str, str]] = []

    def borrow(self) -> tuple[str, Callable[[], None]]:
        """Return the URL of a migrated database without data, and what takes it back."""
        name, url = self._free.pop() if self._free else self._made()
        return url, lambda: self._take_back(name, url)

    def _made(self) -> tuple[str, str]:
        name = f"migrated_{next(self._numbers)}"
        url = self._server.database(name)
        migrate(url)
        return name, url

    def _take_back(self, name: str, url: str) -> None:
        database = open_database(url)
        state = schema.current(database.engine)
        database.dispose()
        if state.is_up_to_date and state.keeps_usage and state.reference_revision == HEAD:
            self._server.execute(f"USE {name}", "SET FOREIGN_KEY_CHECKS = 0", *_emptying())
            self._free.append((name, url))
        else:
            self._server.drop(name)


def _emptying() -> list[str]:
    """Return the statements that delete every row but the standard names, and count ids from 1 again."""
    deletions = [f"DELETE FROM {table}" for table in TABLES]
    custom = [f"DELETE FROM {table} WHERE name LIKE 'CUSTOM\\_%'" for table in CUSTOM_NAMES]
    counts = [f"ALTER TABLE {table} AUTO_INCREMENT = 1" for table in TABLES if table != "provider_usages"]
    return [*deletions, *custom, "COMMIT", *counts]

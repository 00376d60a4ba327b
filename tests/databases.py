"""Fresh databases for tests, copied from a template that is migrated once for each test process."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

from placement.store import schema
from placement.store.database import Database, engine_for
from placement.store.url import normalised
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

"""Fresh databases for tests: copies of a template for SQLite, recycled ones for the others."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import event

from placement.services.cloud_cache import CloudCache
from placement.store.connection.database import Database
from placement.store.connection.engines import engine_for
from placement.store.lifecycle import schema
from placement.store.lifecycle.opening import normalised


def open_database(url: str) -> Database:
    """Return a database to use through the store. SQLite does not wait for the disk."""
    return Database(engine_for(normalised(url), sqlite_synchronous=False))


@contextmanager
def opened_database(url: str) -> Iterator[Database]:
    """Yield the same, and close its connections at the end."""
    database = open_database(url)
    yield database
    database.dispose()


def without_caches(database: Database) -> Database:
    """Return the same database as a process sees it that has cached nothing, and cannot follow its journal."""
    anew = Database(database.engine, keeps_usage=database.keeps_usage, keeps_journal=False)
    anew.cloud_cache = CloudCache()
    return anew


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Yield the statements that readers send to a database meanwhile."""
    sent: list[str] = []

    def note(*call: object) -> None:
        sent.append(str(call[2]))

    event.listen(database.reader, "before_cursor_execute", note)
    yield sent
    event.remove(database.reader, "before_cursor_execute", note)


def migrate(url: str) -> None:
    """Create the schema and the standard names in an empty database."""
    with opened_database(url) as database:
        schema.upgrade(database.engine)


class SQLiteDatabases:
    """Creates databases as files; ``template`` is a migrated one."""

    def __init__(self, directory: Path) -> None:
        self.template = directory / "template.sqlite"
        migrate(f"sqlite:///{self.template}")

    def copy(self, directory: Path) -> str:
        """Return the URL of a migrated database without data."""
        path = directory / "placement.sqlite"
        shutil.copy(self.template, path)
        return f"sqlite:///{path}"


class Pool:
    """Lends databases by their URLs.

    Args:
        make: returns a new database.
        renew: empties a returned one and gives its URL, or None if it had to be dropped.
    """

    def __init__(self, make: Callable[[], str], renew: Callable[[str], str | None]) -> None:
        self.make = make
        self.renew = renew
        self._free: list[str] = []

    def borrow(self) -> tuple[str, Callable[[], None]]:
        """Return the URL of a migrated database without data, and a function that gives it back."""
        url = self._free.pop() if self._free else self.make()
        return url, lambda: self._take_back(url)

    def _take_back(self, url: str) -> None:
        renewed = self.renew(url)
        if renewed is not None:
            self._free.append(renewed)

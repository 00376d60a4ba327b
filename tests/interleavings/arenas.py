"""Opens an arena on a database of any kind, given its URL."""

import contextlib
from collections.abc import Callable, Iterator

import psycopg
from sqlalchemy import make_url, text

from placement.store.connection.engines import engine_for
from placement.store.lifecycle.opening import normalised
from tests.interleavings.lock_waits import LockWaits, MariaDBWaits, PostgreSQLWaits, SQLiteWaits
from tests.interleavings.races import Arena

DEADLOCK_TIMEOUT_MS = 20
"""PostgreSQL looks for deadlocks after so long; by default it takes a second."""


@contextlib.contextmanager
def opened_arena(url: str) -> Iterator[Arena]:
    """Start servers on a migrated database, and check at the end what has to hold after all races."""
    kind = make_url(url).get_backend_name()
    with _WAITS[kind](url) as waits:
        arena = Arena(_impatient(url) if kind == "postgresql" else url, waits)
        try:
            yield arena
            arena.check_books()
        finally:
            arena.close()


def _impatient(url: str) -> str:
    return url + ("&" if "?" in url else "?") + f"options=-c%20deadlock_timeout%3D{DEADLOCK_TIMEOUT_MS}"


@contextlib.contextmanager
def _postgresql(url: str) -> Iterator[LockWaits]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield PostgreSQLWaits(lambda query: connection.execute(query).fetchall())


@contextlib.contextmanager
def _mariadb(url: str) -> Iterator[LockWaits]:
    engine = engine_for(normalised(url))
    with engine.connect() as connection:
        yield MariaDBWaits(lambda query: list(connection.execute(text(query))))
    engine.dispose()


@contextlib.contextmanager
def _sqlite(_url: str) -> Iterator[LockWaits]:
    yield SQLiteWaits()


_WAITS: dict[str, Callable[[str], contextlib.AbstractContextManager[LockWaits]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mysql": _mariadb,
}

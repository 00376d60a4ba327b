"""A forked process has its own connections."""

import ctypes
import os
import traceback
from collections.abc import Callable

from placement.settings import DatabaseSettings
from placement.store.connection.database import Database
from placement.store.lifecycle import opening
from tests.databases import open_database


def test_a_fork_does_not_speak_on_its_parents_connection(postgresql_url: str):
    database = open_database(postgresql_url)
    mine = _backend(database)
    assert _backend_of_a_fork(database, os.fork) != mine
    assert _backend(database) == mine
    database.dispose()


def test_a_fork_that_python_does_not_hear_of_shares_nothing_that_was_open(postgresql_url: str):
    """As uWSGI forks without ``lazy-apps``, after it has loaded the application."""
    database = opening.open_database(DatabaseSettings(connection=postgresql_url))
    unheard = ctypes.PyDLL(None).fork
    assert _backend_of_a_fork(database, unheard) != _backend_of_a_fork(database, unheard)
    database.dispose()


def _backend_of_a_fork(database: Database, fork: Callable[[], int]) -> str:
    """Return the PostgreSQL process that serves a fork of this process."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        _tell_backend(database, writer)
    os.close(writer)
    with os.fdopen(reader) as answer:
        theirs = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    return theirs


def _backend(database: Database) -> str:
    """Return the PostgreSQL process that serves the pool's next connection."""
    with database.engine.connect() as connection:
        return str(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def _tell_backend(database: Database, writer: int) -> None:
    """Do the child's part, and exit before any of pytest's code can run."""
    try:
        os.write(writer, _backend(database).encode())
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

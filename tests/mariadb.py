"""A private MariaDB for a test run, if Debian's package is installed. The system's service is not touched.

Its files are in memory if there is enough room.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
from pymysql.cursors import Cursor

from tests.memory import memory

SERVER = Path("/usr/sbin/mariadbd")
START_TIMEOUT_S = 60
# The data is temporary, so nothing waits for a disk.
OPTIONS = ("--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--skip-log-bin")


class MariaDB:
    """A running server that creates databases."""

    def __init__(self, directory: Path) -> None:
        self._socket = directory / "socket"
        self._log = directory / "log"

    def database(self, name: str) -> str:
        """Create an empty database and return its URL, as in a placement.conf."""
        self.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return f"mysql+pymysql://root@localhost/{name}?unix_socket={self._socket}&charset=utf8mb4"

    def drop(self, name: str) -> None:
        """Delete a database."""
        self.execute(f"DROP DATABASE {name}")

    def cut_off(self, name: str) -> None:
        """Close the connections to a database."""
        with self.cursor("information_schema") as cursor:
            cursor.execute("SELECT id FROM processlist WHERE db = %s", [name])
            for (connected,) in cursor.fetchall():
                with contextlib.suppress(pymysql.Error):  # it has gone by itself
                    cursor.execute(f"KILL {connected}")

    def execute(self, *statements: str) -> None:
        """Run statements as root of the database server."""
        with self.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    @contextlib.contextmanager
    def cursor(self, name: str | None = None) -> Iterator[Cursor]:
        """Connect to a database as root, or to none, committing each statement."""
        connecting = pymysql.connect(unix_socket=str(self._socket), user="root", database=name, autocommit=True)
        with contextlib.closing(connecting) as connection, connection.cursor() as cursor:
            yield cursor

    def answers(self) -> bool:
        """Return whether it is ready. It listens last; a connection that nobody accepts would leak in the driver."""
        return "ready for connections" in self._log.read_text(errors="replace")


@contextlib.contextmanager
def weak_user(server: MariaDB, url: str) -> Iterator[str]:
    """Yield a database's URL for a user that may do everything but make triggers."""
    grants = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, REFERENCES"
    server.execute("CREATE USER weak@localhost", f"GRANT {grants} ON *.* TO weak@localhost")
    try:
        yield url.replace("root@", "weak@")
    finally:
        server.execute("DROP USER weak@localhost")


def launched(directory: Path, *options: str) -> "subprocess.Popen[bytes]":
    """Create the files of a server in a directory and start it there, with its socket and its log."""
    user = unprivileged_user()
    shutil.chown(directory, user=user)
    data = [f"--datadir={directory / 'data'}", f"--user={user}"]
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", *data],
        check=True, capture_output=True,
    )  # fmt: skip
    # Not the place for temporary tables that servers share: one that starts deletes those of others there.
    own = [f"--tmpdir={directory}", f"--socket={directory / 'socket'}"]
    with (directory / "log").open("wb") as log:
        return subprocess.Popen([SERVER, "--no-defaults", *data, *own, *options], stdout=log, stderr=log)


@contextlib.contextmanager
def running_mariadb() -> Iterator[MariaDB]:
    """Start a server on a temporary directory; stop it and delete everything afterwards."""
    with tempfile.TemporaryDirectory(prefix="mariadb-", dir=memory()) as name:
        process = launched(Path(name), *OPTIONS)
        try:
            yield _ready(MariaDB(Path(name)), Path(name) / "log")
        finally:
            process.terminate()
            process.wait(START_TIMEOUT_S)


def unprivileged_user() -> str:
    """Return the user that runs the server: it refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


def _ready(server: MariaDB, log: Path) -> MariaDB:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not server.answers():
        if time.monotonic() > deadline:
            raise TimeoutError(f"MariaDB did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
    return server

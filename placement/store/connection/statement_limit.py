"""How long a statement may wait for PostgreSQL.

A stopped database, or a proxy that no longer forwards, still acknowledges what it gets: TCP notices nothing, and
neither libpq nor the driver limits the wait. In each process one thread looks at the waiting connections and shuts down
the sockets of those that wait for too long. Their statements then fail as if the database had closed the connection.
"""

import logging
import os
import socket
import threading
import weakref
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from psycopg import Connection
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

LOG = logging.getLogger(__name__)

LOOKS = 4
"""How often the connections are looked at within the limit."""
MAX_PAUSE_S = 1.0
WAIT_INTERVAL_S = 0.1
"""How often the driver looks for signals while it waits."""

_wait = Connection.wait


class TimedConnection(Connection[Any]):
    """A connection that knows since when it has been waiting."""

    waits_since = 0.0

    def wait(self, gen: PQGen[RV], interval: float = WAIT_INTERVAL_S) -> RV:  # type: ignore[override]
        """Wait for the database, as each statement of a cursor does. Its other arguments are not used here."""
        self.waits_since = monotonic()
        return _wait(self, gen, interval)  # super() and keywords would take three times as long

    def execute_raw(self, text: bytes) -> PGresult:
        """Run a statement without a cursor."""
        self.waits_since = monotonic()
        return self.pgconn.exec_(text)

    def has_waited_since(self, instant: float) -> bool:
        """Tell whether the statement that it is waiting for, if any, was sent before a moment."""
        return self.waits_since < instant and self.pgconn.transaction_status == TransactionStatus.ACTIVE

    def cut(self) -> None:
        """Shut its socket down, whatever another thread is doing with it."""
        with socket.socket(fileno=os.dup(self.pgconn.socket)) as shared:
            shared.shutdown(socket.SHUT_RDWR)


class StatementLimit:
    """Cuts connections that have waited for longer than ``limit_s``."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._connections: dict[int, weakref.ref[TimedConnection]] = {}
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def watch(self, connection: TimedConnection) -> None:
        """Watch a connection until it is gone.

        A forked process needs a thread of its own; if Python has not heard of the fork, its parent's seems to be alive.
        """
        key = id(connection)
        self._connections[key] = weakref.ref(connection, lambda _gone: self._connections.pop(key, None))
        if self._thread is None or not self._thread.is_alive() or self._process != os.getpid():
            self._process = os.getpid()
            self._thread = threading.Thread(target=self._look, name="statement limit", daemon=True)
            self._thread.start()

    def _look(self) -> None:
        """Look at the connections as long as there are any, without a lock, which a fork could leave taken for good."""
        pause_s = min(self._limit_s / LOOKS, MAX_PAUSE_S)
        while self._connections:
            self.cut_overdue()
            sleep(pause_s)
            if not self._connections:
                self._thread = None  # Whoever watches from now on starts a thread; who came before is seen above.

    def cut_overdue(self) -> None:
        """Cut the connections that have waited for too long."""
        latest = monotonic() - self._limit_s
        living = [connection for reference in list(self._connections.values()) if (connection := reference())]
        overdue = [connection for connection in living if connection.has_waited_since(latest)]
        for connection in overdue:
            with suppress(OSError, ValueError):  # it may have been closed meanwhile
                connection.cut()
                LOG.warning("The database has not answered for %g seconds; the connection is closed.", self._limit_s)

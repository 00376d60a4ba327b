"""Who waits for a lock, asked of the database itself."""

import re
from collections.abc import Callable, Collection
from typing import Any, Protocol

Sessions = Collection[int]


class LockWaits(Protocol):
    """Tells which statements will not end before others do."""

    def session(self, connection: Any) -> int:
        """Return the database's number of a driver's connection."""

    def stuck(self, sent: Sessions, resting: Sessions) -> bool:
        """Tell whether all sessions that have sent a statement wait for what others hold.

        Args:
            sent: those that have sent a statement.
            resting: those that have not, and go on only when told to.
        """


class PostgreSQLWaits:
    """Asks PostgreSQL who blocks whom."""

    def __init__(self, execute: Callable[[str], list[Any]]) -> None:
        self._execute = execute

    def session(self, connection: Any) -> int:
        """Return the process id of the backend."""
        return int(connection.info.backend_pid)

    def stuck(self, sent: Sessions, resting: Sessions) -> bool:
        """Follow the locks from those that rest; a circle is not stuck, because PostgreSQL breaks it."""
        asked = ",".join(map(str, sorted(sent)))
        rows = self._execute(f"SELECT pid, pg_blocking_pids(pid) FROM unnest(ARRAY[{asked}]) AS pid")
        blockers = {pid: set(by) for pid, by in rows}
        at_rest = set(resting)
        while reached := {pid for pid, by in blockers.items() if pid not in at_rest and by & at_rest}:
            at_rest |= reached
        return at_rest >= set(sent)


class MariaDBWaits:
    """Asks InnoDB which transactions wait; it breaks circles at once, so that whoever waits waits for one at rest."""

    _TRANSACTION = re.compile(r"^---TRANSACTION .*?(?=^---|\Z)", re.MULTILINE | re.DOTALL)
    _THREAD = re.compile(r"MariaDB thread id (\d+)")

    def __init__(self, execute: Callable[[str], list[Any]]) -> None:
        self._execute = execute

    def session(self, connection: Any) -> int:
        """Return the number of the connection."""
        return int(connection.thread_id())

    def stuck(self, sent: Sessions, resting: Sessions) -> bool:
        """Read the monitor: information_schema.innodb_trx is up to 100 ms old."""
        ((_, _, status),) = self._execute("SHOW ENGINE INNODB STATUS")
        waiting = {
            int(thread[1])
            for transaction in self._TRANSACTION.findall(status)
            if "\nLOCK WAIT" in transaction and (thread := self._THREAD.search(transaction))
        }
        return waiting >= set(sent)


class SQLiteWaits:
    """On SQLite nobody is sent to wait: a writer begins only while there is no other one (``Scheduler``)."""

    def session(self, connection: Any) -> int:
        """Return any number that identifies the connection."""
        return id(connection)

    def stuck(self, sent: Sessions, resting: Sessions) -> bool:
        """Nobody is."""
        return False

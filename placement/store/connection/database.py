"""The database as one object: its engine, its turns, and what this process caches about it."""

import logging
import math
import os
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.logs import RationedLog
from placement.store.connection.batching import Batching, FairTurns
from placement.store.connection.engines import LOOK, READ, WRITE, transactions
from placement.store.names import Names

LOG = logging.getLogger(__name__)

ATTEMPTS = 12
"""The default number of attempts at a unit of work."""


class Follower(Protocol):
    """A replica that can serve reads (``store/lifecycle/standby.py``)."""

    database: "Database"

    def may_serve(self) -> bool:
        """Tell whether reads may go there now."""

    def failed(self, error: DBAPIError | PoolTimeout) -> None:
        """Note that a read failed there."""


class Database:
    """A database with the tables of ``store/tables.py``.

    ``attempts`` caps the attempts at one unit of work. ``keeps_usage`` says whether the triggers that keep
    ``provider_usages`` exact are installed; without them usage is summed from the allocations. ``writer_lock`` admits
    one writing thread of this process at a time on SQLite. ``claim_turns`` serialises planner claims within the
    process: side by side they would pick the same places and all but one would lose; ``claim_batches`` plans those that
    wait meanwhile together. ``standby``, if any, serves reads that may be slightly stale; ``primary`` is set on it.
    ``prober`` is the same database for health checks, with a connection of its own.
    ``on_event`` is told of each retry, fault, failed write and drop of caches with its cause, and of caches read anew.
    ``write_fault`` is the fault of this process's last write, None once one has succeeded. ``file`` is that of SQLite.
    ``cloud_cache`` is what this process keeps of its contents (``services/cloud_cache.py``).
    ``trigger_revision`` is the revision of triggers that ``keeps_usage`` and ``keeps_journal`` are true of
    (``store/journal/triggers.py``), ``doubted_revision`` one under which kept usage was found wrong.
    """

    def __init__(
        self, engine: Engine, *, keeps_usage: bool = True, keeps_journal: bool = True, attempts: int = ATTEMPTS
    ) -> None:
        self.engine = engine
        self.file = DatabaseFile(engine)
        self.attempts = attempts
        self.writer_lock = _writer_lock(engine.dialect.name)
        self.claim_turns = FairTurns()
        self.claim_batches: Batching[Any] = Batching()
        _leave_to_the_parent(self)
        self.keeps_usage = keeps_usage
        self.keeps_journal = keeps_journal
        self.trigger_revision: str | None = None
        self.doubted_revision: str | None = None
        self.triggers_known_until = 0.0
        self.standby: Follower | None = None
        self.primary: Database | None = None
        self.prober: Database | None = None
        self.names = Names()
        self.cloud_cache: Any = None
        self.retries: Counter[str] = Counter()
        self.on_event: Callable[[str, str], object] = lambda _event, _cause: None
        self.read_anew_at: float | None = None
        self.dropped_at: dict[str, datetime] = {}
        self.write_fault: str | None = None
        self._fault_log = RationedLog(LOG)
        self.writer = engine.execution_options(**transactions(engine, WRITE))
        self.reader = engine.execution_options(**transactions(engine, READ))
        self.looker = engine.execution_options(**transactions(engine, LOOK))

    @property
    def dialect(self) -> str:
        """The kind of database: ``sqlite``, ``postgresql``, or ``mysql``, which stands for MariaDB, too."""
        return self.engine.dialect.name

    @property
    def engines(self) -> list[Engine]:
        """The engine, and the standby's if there is one."""
        return [self.engine] if self.standby is None else [self.engine, self.standby.database.engine]

    def note_retry(self, reason: str) -> None:
        """Count a retry of a unit of work and notify the listener."""
        self.retries[reason] += 1
        self.on_event("retry", reason)

    def note_drop(self, reason: str) -> None:
        """Note, and notify the listener, that all that was cached of the database is dropped."""
        self.dropped_at[reason] = datetime.now(UTC)
        self.on_event("drop", reason)

    def note_read_anew(self) -> None:
        """Note, and notify the listener, that what is cached of the database is read from its tables again."""
        self.read_anew_at = time.time()
        self.on_event("read anew", "")

    def note_fault(self, cause: str, words: str, *, kind: str) -> None:
        """Note that a unit of work, WRITE or READ, was given up: log the database's words, notify the listener."""
        self._fault_log.write(logging.WARNING, cause, "The database failed a request (%s): %s", cause, words or "-")
        self.on_event("fault", cause)
        if kind == WRITE:
            self.write_fault = cause
            self.on_event("failed write", cause)

    @property
    def most_connections(self) -> float:
        """How many connections this process opens at most; infinite if nothing limits them."""
        pools: list[Any] = [engine.pool for engine in self.engines]
        is_limited = all(pool.size() > 0 and pool._max_overflow >= 0 for pool in pools)
        return sum([pool.size() + pool._max_overflow for pool in pools]) if is_limited else math.inf

    def watch_pool(self, *, taken: Callable[[], object], given_back: Callable[[], object]) -> None:
        """Call ``taken`` and ``given_back`` whenever a connection is checked out of the pool and returned to it."""
        for engine in self.engines:
            event.listen(engine, "checkout", lambda *_connection: taken() and None)
            event.listen(engine, "checkin", lambda *_connection: given_back() and None)

    def dispose(self) -> None:
        """Close all connections."""
        for engine in [*self.engines, *([self.prober.engine] if self.prober else [])]:
            engine.dispose()


class DatabaseFile:
    """The file of a SQLite database, which an operator may remove or replace while the server runs.

    Its connections would go on with the old file, and whatever they write would be lost. A server with caches cannot
    just go on with another file either, so it refuses to work until the file is back or the server is restarted.
    """

    def __init__(self, engine: Engine) -> None:
        is_file = engine.dialect.name == "sqlite" and "uri" not in engine.url.query
        self._path = Path(engine.url.database or "") if is_file else None
        self._opened = self._identity()
        if self._path is not None:
            event.listen(engine, "do_connect", lambda *_connecting: self.check())
            event.listen(engine, "checkout", lambda *_connection: self.check())

    def check(self) -> None:
        """Check that the path still leads to the file that was opened, or raise what SQLite itself reports then."""
        opened = self._opened  # before the look at the file, which another thread may be creating
        identity = self._identity()
        if opened is None:
            self._opened = self._opened or identity
        elif identity != opened:
            moved = sqlite3.OperationalError(f"{self._path} is not the file that was opened")
            moved.sqlite_errorcode = sqlite3.SQLITE_READONLY_DBMOVED
            raise OperationalError(None, None, moved)

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if status is None else (status.st_dev, status.st_ino)


def _writer_lock(dialect: str) -> AbstractContextManager[object]:
    """Return the lock that admits one writer of this process at a time; polling SQLite, some would starve."""
    return threading.Lock() if dialect == "sqlite" else nullcontext()


def _leave_to_the_parent(database: Database) -> None:
    """Give forked processes connections and locks of their own: servers may fork after the application is created."""
    living = weakref.ref(database)

    def forget() -> None:
        database = living()
        if database is not None:
            database.engine.dispose(close=False)
            database.writer_lock = _writer_lock(database.dialect)
            database.claim_turns = FairTurns()
            database.claim_batches = Batching()

    os.register_at_fork(after_in_child=forget)

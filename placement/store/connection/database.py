"""The database as one object: its engine, how it begins transactions, and what this process caches about it."""

import logging
import math
import os
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.rationed_log import RationedLog
from placement.store.connection import direct, origin_setting
from placement.store.connection.batching import Batching
from placement.store.connection.faults import is_cut_off
from placement.store.connection.memory import compiled_statements
from placement.store.connection.pool_log import keep_to_one_line
from placement.store.connection.turns import FairTurns
from placement.store.names import Names

LOG = logging.getLogger(__name__)

_BEGIN = "placement_begin"
"""Execution option: the text that begins a connection's transactions; empty for statements that stand alone."""

WRITE, READ, LOOK = "write", "read", "look"
"""Kinds of units of work: those that write, that read in one snapshot, and that send a single query."""

_BEGINNINGS = {
    # IMMEDIATE takes the write lock at once: an upgrade from a read lock could fail halfway through.
    "sqlite": {WRITE: "BEGIN IMMEDIATE", READ: "BEGIN", LOOK: ""},
    "postgresql": {
        WRITE: "BEGIN ISOLATION LEVEL READ COMMITTED",
        READ: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        LOOK: "",
    },
    # Sets the level of the next transaction, which the first statement begins implicitly.
    "mysql": {
        WRITE: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        READ: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        LOOK: "",
    },
}
_BEGINNINGS["mariadb"] = _BEGINNINGS["mysql"]

SQLITE_BUSY_TIMEOUT_S = 15.0

ATTEMPTS = 12
"""The default number of attempts at a unit of work."""


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How many connections a process holds, and how long it waits for them.

    ``statement_s`` limits how long a statement waits for PostgreSQL; None means forever, as maintenance needs.
    """

    size: int = 8
    overflow: int = 16
    timeout_s: float = 30.0
    recycle_s: int = 3600
    statement_s: int | None = None


class Follower(Protocol):
    """A replica that can serve reads (``store/connection/standby.py``)."""

    database: "Database"

    def may_serve(self) -> bool:
        """Tell whether reads may go there now."""

    def failed(self, error: DBAPIError | PoolTimeout) -> None:
        """Note that a read failed there."""


class FaultListener(Protocol):
    """Is notified of faults."""

    def __call__(self, cause: str, *, is_write: bool) -> object:
        """Note a fault of a cause (``store/connection/faults.py``), and whether it failed a write."""


class Database:
    """A database with the tables of ``store/tables.py``.

    ``attempts`` caps the attempts at one unit of work. ``keeps_usage`` says whether the triggers that keep
    ``provider_usages`` exact are installed; without them usage is summed from the allocations. ``writer_lock`` admits
    one writing thread of this process at a time on SQLite. ``claim_turns`` serialises planner claims within the
    process: side by side they would pick the same places and all but one would lose; ``claim_batches`` plans those that
    wait meanwhile together. ``standby``, if any, serves reads that may be slightly stale; ``primary`` is set on it.
    ``prober`` is the same database for health checks, with a connection of its own.
    ``write_fault`` is the fault of this process's last write, None once one has succeeded. ``file`` is that of SQLite.
    ``trigger_revision`` is the revision of triggers that ``keeps_usage`` and ``keeps_journal`` are true of
    (``store/journal/completeness.py``), ``doubted_revision`` one under which kept usage was found wrong.
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
        self.retries: Counter[str] = Counter()
        self.on_retry: Callable[[str], object] | None = None
        self.on_fault: FaultListener | None = None
        self.on_read_anew: Callable[[], object] | None = None
        self.on_drop: Callable[[str], object] | None = None
        self.write_fault: str | None = None
        self._fault_log = RationedLog(LOG)
        compiled = compiled_statements()
        self.writer = engine.execution_options(compiled_cache=compiled, **transactions(engine, WRITE))
        self.reader = engine.execution_options(compiled_cache=compiled, **transactions(engine, READ))
        self.looker = engine.execution_options(compiled_cache=compiled, **transactions(engine, LOOK))

    @property
    def dialect(self) -> str:
        """The kind of database: ``sqlite``, ``postgresql``, ``mysql`` or ``mariadb``."""
        return self.engine.dialect.name

    @property
    def engines(self) -> list[Engine]:
        """The engine, and the standby's if there is one."""
        return [self.engine] if self.standby is None else [self.engine, self.standby.database.engine]

    def note_retry(self, reason: str) -> None:
        """Count a retry of a unit of work and notify the listener."""
        self.retries[reason] += 1
        if self.on_retry is not None:
            self.on_retry(reason)

    def note_drop(self, reason: str) -> None:
        """Notify the listener that all that was cached of the database is dropped."""
        if self.on_drop is not None:
            self.on_drop(reason)

    def note_read_anew(self) -> None:
        """Notify the listener that what is cached of the database is read from its tables again."""
        if self.on_read_anew is not None:
            self.on_read_anew()

    def note_fault(self, cause: str, words: str, *, kind: str) -> None:
        """Note that a unit of work has been given up: log it and notify the listener.

        Args:
            cause: the fault's cause (``store/connection/faults.py``).
            words: the database's own message.
            kind: WRITE or READ.
        """
        if kind == WRITE:
            self.write_fault = cause
        self._fault_log.write(logging.WARNING, cause, "The database failed a request (%s): %s", cause, words or "-")
        if self.on_fault is not None:
            self.on_fault(cause, is_write=kind == WRITE)

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
        """Check that the path still leads to the file that was opened.

        Raises:
            OperationalError: it does not; the code is the one with which SQLite itself reports this.
        """
        identity = self._identity()
        if self._opened is None:
            self._opened = identity
        elif identity != self._opened:
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
    """Return the lock that admits one writer of this process at a time.

    SQLite admits one writer and lets the others poll, so some starve; a lock wakes the next one at once and costs next
    to nothing. Every other database queues its writers better itself.
    """
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


def transactions(engine: Engine, kind: str) -> dict[str, Any]:
    """Return the execution options for WRITE, READ or LOOK transactions."""
    return {_BEGIN: _BEGINNINGS[engine.dialect.name][kind]}


def engine_for(
    url: URL | str,
    pool: PoolOptions = PoolOptions(),
    *,
    sqlite_synchronous: bool = True,
    plain_sqlalchemy: bool = False,
) -> Engine:
    """Create the engine for a normalised database URL (``store/connection/url.py``). It connects on first use.

    ``plain_sqlalchemy`` keeps PostgreSQL statements off the fast path (``store/connection/direct.py``).
    """
    backend = make_url(url).get_backend_name()
    if backend == "sqlite":
        return _sqlite_engine(url, synchronous=sqlite_synchronous)
    keep_to_one_line()
    directly = backend == "postgresql" and not plain_sqlalchemy and _can_send_directly()
    engine = create_engine(
        url,
        execution_options={direct.SENDS_DIRECTLY: True} if directly else {},
        pool_size=pool.size,
        max_overflow=pool.overflow,
        pool_timeout=pool.timeout_s,
        pool_recycle=pool.recycle_s,
    )
    if backend == "postgresql":
        _limit_statements(engine, pool.statement_s)
        _speak_ourselves(engine, directly=directly)
    else:
        event.listen(engine, "connect", _read_what_others_wrote)
        event.listen(engine, "begin", _begin_on_mariadb)
        event.listen(engine, "handle_error", _leave_a_node_that_is_cut_off)
        event.listen(engine, "handle_error", _tell_a_connection_that_was_never_made)
    return engine


def _limit_statements(engine: Engine, limit_s: int | None) -> None:
    # Imported late: importing psycopg would slow the start on SQLite.
    from placement.store.connection.statement_limit import StatementLimit, TimedConnection  # noqa: PLC0415

    limit = None if limit_s is None else StatementLimit(limit_s)

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, parameters: Any) -> TimedConnection:
        connection = TimedConnection.connect(*arguments, **parameters)
        if limit is not None:
            limit.watch(connection)
        return connection


def _leave_a_node_that_is_cut_off(context: ExceptionContext) -> None:
    """Drop the connection: such a node refuses ROLLBACK as well, and the pool would log that with a traceback."""
    if is_cut_off(context.original_exception):
        context.is_disconnect = True


def _tell_a_connection_that_was_never_made(context: ExceptionContext) -> None:
    """Do not call it lost: the request would try again, and wait as long for the same silent database."""
    if context.connection is None and context.original_exception is not None:
        context.is_disconnect &= not isinstance(context.original_exception.__context__, TimeoutError)


def _can_send_directly() -> bool:
    missing = direct.unmet()
    if missing:
        LOG.warning(
            "Statements go to PostgreSQL through SQLAlchemy, which takes longer: release %s lacks what the fast path "
            "needs (%s).",
            sqlalchemy.__version__,
            missing,
        )
    return missing is None


def _begin_on_mariadb(connection: Connection) -> None:
    """Set the isolation level of the next transaction.

    SQLAlchemy's own isolation levels are set for the session and reset afterwards: four statements instead of one, and
    if the connection breaks at one of them, an error that no retry recognises.
    """
    if text := connection.get_execution_options().get(_BEGIN):
        direct.execute_raw(connection, text)
        if _writes(connection):
            origin_setting.tell_mariadb(connection)


def _read_what_others_wrote(connection: Any, _record: Any) -> None:
    """On a Galera node, make each transaction wait for what other nodes have acknowledged before it began."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
        if (found := cursor.fetchone()) and found[1] == "ON":
            cursor.execute("SET SESSION wsrep_sync_wait = @@SESSION.wsrep_sync_wait | 1")


def _speak_ourselves(engine: Engine, *, directly: bool) -> None:
    """Begin and end PostgreSQL transactions ourselves.

    If the driver did, every switch between reading and writing would reconfigure the connection.
    """

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.autocommit = True
        if _has_a_session(connection):
            connection.execute(_PRICE_OF_A_PAGE)
        else:
            connection.prepare_threshold = None

    event.listen(engine, "begin", _begin_directly if directly else _begin_on_postgresql)
    if directly:
        event.listen(engine, "rollback", direct.roll_back)


def _begin_directly(connection: Connection) -> None:
    if text := connection.get_execution_options().get(_BEGIN, "BEGIN"):
        request = origin_setting.postgresql_setting() if _writes(connection) else None
        direct.begin(connection, f"{text}; {request}" if request else text)


def _begin_on_postgresql(connection: Connection) -> None:
    _begin(connection)
    if _writes(connection) and (request := origin_setting.postgresql_setting()):
        connection.exec_driver_sql(request)


def _begin_on_sqlite(connection: Connection) -> None:
    _begin(connection)
    if _writes(connection):
        origin_setting.note_on_sqlite(connection)


def _begin(connection: Connection) -> None:
    if text := connection.get_execution_options().get(_BEGIN, "BEGIN"):
        connection.exec_driver_sql(text)


def _writes(connection: Connection) -> bool:
    """Tell whether a connection's transactions are writing units of work."""
    beginning: str | None = connection.get_execution_options().get(_BEGIN)
    return beginning == _BEGINNINGS[connection.dialect.name][WRITE]


def _has_a_session(connection: Any) -> bool:
    """Tell whether the connection owns its session rather than borrowing one per transaction from, say, pgbouncer.

    A pooler reports a process id of its own making. In a shared session, statements prepared on this connection are
    missing or shadowed by someone else's of the same name, and settings leak to other clients.
    """
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    return bool(process == connection.info.backend_pid)


# PostgreSQL's default random_page_cost assumes spinning disks. With it the planner scans all inventories of a class to
# find those of twenty trees: forty times the work in a cloud of 10,000 hosts. These tables are small enough to be
# cached. A value that an operator has set is left alone.
_PRICE_OF_A_PAGE = "SELECT set_config('random_page_cost', '1.1', false) WHERE current_setting('random_page_cost') = '4'"


def _sqlite_engine(url: URL | str, *, synchronous: bool) -> Engine:
    engine = create_engine(url, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_S, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # The driver's own transaction handling cannot say BEGIN IMMEDIATE: switch it off and begin ourselves.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = " + ("FULL" if synchronous else "OFF"))

    event.listen(engine, "begin", _begin_on_sqlite)
    event.listen(engine, "commit", origin_setting.complete_on_sqlite)
    return engine

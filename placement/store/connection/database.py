"""The database as one object, and its units of work: the decorators that services are made with.

    @writes
    def delete_provider(tx: Transaction, uuid: str) -> None: ...

is called as ``delete_provider(database, uuid)``. One unit of work is one transaction, retried as a whole: the function
may run several times, so it must not carry state from one run to the next. Any exception rolls everything back. What to
retry, how long to back off and when to give up is decided here, too.
"""

import functools
import logging
import math
import os
import random
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, Executable, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.errors import Unavailable
from placement.logs import RationedLog
from placement.store.connection.batching import Batching, FairTurns
from placement.store.connection.engines import LOOK, READ, WRITE, DatabaseFile, transactions
from placement.store.connection.faults import (
    CONNECTION,
    NO_FREE_CONNECTION,
    READ_ONLY,
    TOO_LONG,
    DatabaseFailed,
    DatabaseFault,
    fault_of,
    first_line,
)
from placement.store.connection.statements import NO_VALUES, PreparedStatement, RowChange, Values, tuples_of
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


P = ParamSpec("P")
T = TypeVar("T")

FIRST_PAUSE_S = 0.004
MAX_PAUSE_S = 0.4
LAST_TRY_S = 20.0
"""No attempt starts after this long: a single lock wait may last as long as the database's operator allows."""


class OutcomeUnknown(Unavailable):
    """The connection to the database broke while the change was being committed; look before you try again."""


def pauses(attempts: int) -> Iterator[float]:
    """Yield the backoff before each retry: exponential, capped, and jittered so that rivals drift apart."""
    for attempt in range(attempts - 1):
        ceiling = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
        yield random.uniform(ceiling / 4, ceiling)  # noqa: S311 - spreads load, keeps no secret


def retried(database: Database, attempt: Callable[[], T], *, kind: str) -> T:
    """Call ``attempt`` until it succeeds, fails for good, or has used up its attempts or its time (DatabaseFailed).

    This is the server's only retry boundary. It stands outside the transaction, around the whole unit of work with its
    commit, because that is where a failed certification (Galera) or serialization may surface.
    """
    begun = time.monotonic()
    waits = pauses(database.attempts)
    while True:
        try:
            return attempt()
        except PoolTimeout as error:
            raise given_up(database, NO_FREE_CONNECTION, kind=kind) from error
        except DBAPIError as error:
            fault = fault_of(error)
            if fault is None:
                raise
            if fault is CONNECTION:
                database.engine.dispose()  # Idle connections are lost or stalled as well.
            if fault.passes:
                database.note_retry(fault.cause)
            wait = next(waits, None) if fault.passes and time.monotonic() - begun < LAST_TRY_S else None
            if wait is None:
                raise given_up(database, fault, kind=kind, words=first_line(error)) from error
            time.sleep(wait)


def given_up(database: Database, fault: DatabaseFault, *, kind: str, words: str = "") -> DatabaseFailed:
    """Note a fault and return the error for the client."""
    database.note_fault(fault.cause, words, kind=kind)
    would_fail_again = fault is TOO_LONG and kind == READ
    return DatabaseFailed(fault, retry_after_s=None if would_fail_again else fault.retry_after_s)


class Transaction:
    """An open transaction of one run of a unit of work; a snapshot shows one moment, and nothing is written."""

    __slots__ = ("connection", "database", "is_snapshot", "names", "remembered")

    def __init__(self, connection: Connection, database: Database, *, is_snapshot: bool = False) -> None:
        self.connection = connection
        self.database = database
        self.is_snapshot = is_snapshot
        self.remembered: dict[Hashable, Any] = {}
        """Results computed from this snapshot, shared by everyone who may need them again."""
        self.names = database.names.in_snapshot() if is_snapshot else database.names
        """The ids of resource classes and traits by name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        # What is remembered refers to this transaction: a cycle, in which whole clouds would wait for the collector.
        self.remembered.clear()

    @property
    def dialect(self) -> str:
        """The kind of database: ``sqlite``, ``postgresql``, or ``mysql``, which stands for MariaDB, too."""
        return self.database.dialect

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[*tuple[Any, ...]]:
        """Execute a statement."""
        return self.connection.execute(statement, parameters)

    def keep_no_statement(self) -> None:
        """Have SQLAlchemy forget this transaction's further statements, which take a hundred times their text."""
        self.connection.execution_options(compiled_cache=None)

    def tuples(self, statement: PreparedStatement | Executable, values: Values = NO_VALUES) -> list[Any]:
        """Run a query and return the driver's raw tuples: for large answers of integers and strings.

        Types that need conversion (dates on SQLite) come unconverted.
        """
        if isinstance(statement, PreparedStatement):
            return statement.tuples(self.connection, values)
        return tuples_of(self.connection, statement, values)

    def rows(self, statement: PreparedStatement, values: Values = NO_VALUES) -> list[Any]:
        """Run a query and return its rows, converted to Python types."""
        return statement.rows(self.connection, values)

    def change(self, statement: PreparedStatement, values: Values = NO_VALUES) -> int:
        """Run a change and return the number of rows affected."""
        return statement.change(self.connection, values)

    def write_rows(self, statement: RowChange, rows: Sequence[Values]) -> None:
        """Insert or change rows, in order."""
        statement.send(self.connection, rows)


def reads(work: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Database, P], T]:
    """Run ``work`` in one read-only snapshot."""

    @functools.wraps(work)
    def run(database: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return retried(database, lambda: _in_snapshot(database, lambda tx: work(tx, *args, **kwargs)), kind=READ)

    return run


def reads_anywhere(work: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Database, P], T]:
    """Run ``work`` in one read-only snapshot, on the standby if that can be read from.

    For expensive reads that may be slightly stale: a client that has just written may not see its write there yet.
    """

    @functools.wraps(work)
    def run(database: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def read(tx: Transaction) -> T:
            return work(tx, *args, **kwargs)

        standby = database.standby
        if standby is not None and standby.may_serve():
            try:
                return _in_snapshot(standby.database, read)
            except (DBAPIError, PoolTimeout) as error:
                if isinstance(error, DBAPIError) and fault_of(error) is TOO_LONG:
                    raise given_up(database, TOO_LONG, kind=READ, words=first_line(error)) from error
                standby.failed(error)
                database.note_retry("standby")
        return retried(database, lambda: _in_snapshot(database, read), kind=READ)

    return run


def reads_once(work: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Database, P], T]:
    """Run ``work``, which sends a single query, without a transaction: BEGIN and COMMIT are a third of a small read."""

    @functools.wraps(work)
    def run(database: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def attempt() -> T:
            with database.looker.connect() as connection, Transaction(connection, database) as tx:
                return work(tx, *args, **kwargs)

        return retried(database, attempt, kind=READ)

    return run


def writes(work: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Database, P], T]:
    """Run ``work`` in one writing transaction; return once it is committed."""

    @functools.wraps(work)
    def run(database: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def attempt() -> T:
            with database.writer_lock:
                result = _committed(database, lambda tx: work(tx, *args, **kwargs))
                database.file.check()
                return result

        result = retried(database, attempt, kind=WRITE)
        if database.write_fault is not None:
            database.write_fault = None
        return result

    return run


def _in_snapshot(database: Database, work: Callable[[Transaction], T]) -> T:
    with (
        database.reader.connect() as connection,
        connection.begin(),
        Transaction(connection, database, is_snapshot=True) as tx,
    ):
        return work(tx)


def _committed(database: Database, work: Callable[[Transaction], T]) -> T:
    engine = database.writer
    with engine.connect() as connection, Transaction(connection, database) as tx:
        transaction = connection.begin()
        try:
            result = work(tx)
        except DBAPIError as error:
            transaction.rollback()
            if fault_of(error) is READ_ONLY:
                # Behind a proxy a new connection may reach a writable server; this one never will.
                connection.invalidate(error)
            raise
        except BaseException:
            transaction.rollback()
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            # If the connection breaks during COMMIT, the outcome is unknown: a retry could apply the change twice.
            if error.connection_invalidated:
                engine.dispose()
                raise OutcomeUnknown from error
            raise
        return result

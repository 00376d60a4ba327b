"""One unit of work is one transaction, retried as a whole. These are the decorators that services are made with.

    @writes
    def delete_provider(tx: Transaction, uuid: str) -> None: ...

is called as ``delete_provider(database, uuid)``. The function may run several times, so it must not carry state from
one run to the next. Any exception rolls everything back. What to retry, how long to back off and when to give up is
decided here, too.
"""

import functools
import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection, CursorResult, Executable, Insert, Table
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.errors import Unavailable
from placement.store.connection.database import Database
from placement.store.connection.engines import READ, WRITE
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
from placement.store.connection.prepared import NO_VALUES, PreparedInsert, PreparedStatement, Values

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
        cursor = self.connection.execute(statement, values).cursor
        return [] if cursor is None else list(cursor.fetchall())

    def rows(self, statement: PreparedStatement, values: Values = NO_VALUES) -> list[Any]:
        """Run a query and return its rows, converted to Python types."""
        return statement.rows(self.connection, values)

    def change(self, statement: PreparedStatement, values: Values = NO_VALUES) -> int:
        """Run a change and return the number of rows affected."""
        return statement.change(self.connection, values)

    def insert(self, statement: PreparedInsert, rows: Sequence[Values]) -> None:
        """Insert rows in order."""
        statement.insert(self.connection, rows)


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


def insert_unless_exists(
    tx: Transaction, table: Table, values: dict[str, Any] | list[dict[str, Any]], *, key: str
) -> bool:
    """Insert rows, skipping those whose unique ``key`` exists already; tell whether any was inserted."""
    # Without preserve_rowcount SQLAlchemy discards an INSERT's row count, and with RETURNING it has none.
    insert = insert_ignoring(tx.dialect, table, key).inline().execution_options(preserve_rowcount=True)
    return tx.execute(insert, values).rowcount > 0


def insert_ignoring(dialect: str, table: Table, *key: str) -> Insert:
    """Return an INSERT that skips rows whose unique key exists already; without one named, whatever key it is."""
    if dialect in {"postgresql", "sqlite"}:
        on_conflict = postgresql_insert if dialect == "postgresql" else sqlite_insert
        return on_conflict(table).on_conflict_do_nothing(index_elements=key or None)
    # IGNORE hides truncation as well, but values are validated before they get here. ON DUPLICATE KEY UPDATE would
    # count an existing row like a new one, because SQLAlchemy asks the driver for rows matched, not rows changed.
    return mysql_insert(table).prefix_with("IGNORE")

"""One unit of work is one transaction, retried as a whole: the decorators that services are made with.

    @writes
    def delete_provider(tx: Transaction, uuid: str) -> None: ...

is called as ``delete_provider(database, uuid)``. The function may run several times, so it must not keep anything
between runs. What it raises rolls everything back.
"""

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, CursorResult, Engine, Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.store.connection.database import READ, WRITE, Database
from placement.store.connection.faults import READ_ONLY, TOO_LONG, fault_of, first_line
from placement.store.connection.prepared import NO_VALUES, PreparedInsert, PreparedStatement, Values
from placement.store.connection.retry import OutcomeUnknown, given_up, retried
from placement.store.names import Names

P = ParamSpec("P")
T = TypeVar("T")


class Transaction:
    """An open transaction on a database. Lives as long as one run of a unit of work.

    Args:
        connection: the connection.
        database: the database.
        is_snapshot: whether all that is read is as of one moment, and nothing can be written.
    """

    __slots__ = ("connection", "database", "is_snapshot", "remembered")

    def __init__(self, connection: Connection, database: Database, *, is_snapshot: bool = False) -> None:
        self.connection = connection
        self.database = database
        self.is_snapshot = is_snapshot
        self.remembered: dict[Hashable, Any] = {}
        """What has been found out about a snapshot, by whoever may ask again."""

    @property
    def names(self) -> Names:
        """Ids of resource classes and traits."""
        return self.database.names

    @property
    def dialect(self) -> str:
        """The kind of database."""
        return self.database.dialect

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[*tuple[Any, ...]]:
        """Run one statement."""
        return self.connection.execute(statement, parameters)

    def tuples(self, statement: PreparedStatement | Executable, values: Values = NO_VALUES) -> list[Any]:
        """Run one query and return the driver's own tuples: for large answers of integers and strings.

        Result types that need conversion (dates on SQLite) come unconverted.
        """
        if isinstance(statement, PreparedStatement):
            return statement.tuples(self.connection, values)
        cursor = self.connection.execute(statement, values).cursor
        return [] if cursor is None else list(cursor.fetchall())

    def rows(self, statement: PreparedStatement, values: Values = NO_VALUES) -> list[Any]:
        """Run one query and return its rows."""
        return statement.rows(self.connection, values)

    def change(self, statement: PreparedStatement, values: Values = NO_VALUES) -> int:
        """Run one change and return how many rows it touched."""
        return statement.change(self.connection, values)

    def insert(self, statement: PreparedInsert, rows: Sequence[Values]) -> None:
        """Insert rows, in their order."""
        statement.insert(self.connection, rows)


def reads(work: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Database, P], T]:
    """Make ``work`` run in one read-only snapshot."""

    @functools.wraps(work)
    def run(database: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return retried(database, lambda: _in_snapshot(database, lambda tx: work(tx, *args, **kwargs)), kind=READ)

    return run


def reads_anywhere(work: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Database, P], T]:
    """Make ``work`` run in one read-only snapshot, of the standby where there is one that can be read from.

    For what may be a moment old, and costs much: a client that has just written may not see it there yet.
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
    """Make ``work``, which sends one query, run without a transaction around it.

    A single statement is a snapshot of its own; what a BEGIN and a COMMIT cost besides is a third of a small read.
    Names of resource classes may be looked up with another query.
    """

    @functools.wraps(work)
    def run(database: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def attempt() -> T:
            with database.looker.connect() as connection:
                return work(Transaction(connection, database), *args, **kwargs)

        return retried(database, attempt, kind=READ)

    return run


def writes(work: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Database, P], T]:
    """Make ``work`` run in one writing transaction and return only when it is committed."""

    @functools.wraps(work)
    def run(database: Database, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def attempt() -> T:
            with database.writer_lock:
                return _committed(
                    database.writer, lambda connection: work(Transaction(connection, database), *args, **kwargs)
                )

        result = retried(database, attempt, kind=WRITE)
        if database.write_fault is not None:
            database.write_fault = None
        return result

    return run


def _in_snapshot(database: Database, work: Callable[[Transaction], T]) -> T:
    with database.reader.connect() as connection, connection.begin():
        return work(Transaction(connection, database, is_snapshot=True))


def _committed(engine: Engine, work: Callable[[Connection], T]) -> T:
    with engine.connect() as connection:
        transaction = connection.begin()
        try:
            result = work(connection)
        except DBAPIError as error:
            transaction.rollback()
            if fault_of(error) is READ_ONLY:
                # Behind a proxy the next connection may lead to a server that takes writes; this one never will.
                connection.invalidate(error)
            raise
        except BaseException:
            transaction.rollback()
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            # Broken while committing, the change may or may not have been made: trying again could make it twice.
            if error.connection_invalidated:
                raise OutcomeUnknown from error
            raise
        return result

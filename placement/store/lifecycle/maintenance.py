"""Connections for maintenance, exclusive or read-only. Database errors come as one-sentence exceptions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.errors import PlacementError, Unavailable
from placement.store.connection.engines import READ, WRITE, transactions
from placement.store.connection.faults import fault_of, first_line
from placement.store.journal.watched import REQUEST_VARIABLE
from placement.store.lifecycle.cluster_turn import turn_in_cluster

MAINTENANCE_KEY = 0x706C_6163_656D_6462
STATEMENT_TIMEOUT_S = 3600

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long maintenance waits, in seconds.

    Args:
        turn_s: for another process that is working on the schema.
        lock_s: for a locked table; kept short because other sessions queue up behind us.
    """

    turn_s: float = 600
    lock_s: float = 10


PATIENCE = Patience()


def silent(_step: str) -> None:
    """Ignore progress."""


class MaintenanceFailed(PlacementError):
    """The database refused a statement."""


@contextmanager
def exclusively(engine: Engine, patience: Patience = PATIENCE) -> Iterator[Connection]:
    """Yield a connection in one transaction, as the only process doing maintenance; commit at the end.

    Requests are served meanwhile, except where a statement locks a table.

    Raises:
        Unavailable: the database cannot be reached, or a lock was not granted in time.
        MaintenanceFailed: the database refused a statement.
    """
    with _plain_errors(), _ALONE[engine.dialect.name](engine, patience) as connection:
        yield connection


@contextmanager
def looking(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in one read-only snapshot. Raises as ``exclusively``."""
    with _plain_errors(), engine.execution_options(**transactions(engine, READ)).begin() as connection:
        yield connection


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as error:
        raise Unavailable("All database connections are busy; try again.") from error
    except DBAPIError as error:
        fault, sentence = fault_of(error), first_line(error)
        if error.statement is None:
            raise Unavailable(f"The database cannot be reached: {sentence}") from error
        if fault is None:
            raise MaintenanceFailed(f"The database refused: {sentence}") from error
        if fault.passes:
            raise Unavailable(f"The database is busy, nothing was changed; try again: {sentence}") from error
        raise MaintenanceFailed(f"The database failed ({fault.cause}): {sentence}") from error


@contextmanager
def _alone_on_sqlite(engine: Engine, _patience: Patience) -> Iterator[Connection]:
    with engine.execution_options(**transactions(engine, WRITE)).begin() as connection:
        yield connection


@contextmanager
def _alone_on_postgresql(engine: Engine, patience: Patience) -> Iterator[Connection]:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{patience.turn_s}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MAINTENANCE_KEY})")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{patience.lock_s}s'")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT_S}s'")
        yield connection


@contextmanager
def _alone_on_mariadb(engine: Engine, patience: Patience) -> Iterator[Connection]:
    """Take the turn by a session lock, since DDL commits implicitly; in a cluster, by a row as well."""
    # READ COMMITTED would not lock the gaps between rows while usage is counted.
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        connection.detach()  # keep the session's settings out of the pool
        connection.exec_driver_sql(f"SET {REQUEST_VARIABLE} = NULL")
        given = connection.exec_driver_sql(
            f"SELECT GET_LOCK(LEFT(CONCAT('placement.', DATABASE()), 64), {patience.turn_s})"
        ).scalar_one()
        if not given:
            raise Unavailable("Another process is working on the schema; try again.")
        for setting in ("lock_wait_timeout", "innodb_lock_wait_timeout"):
            connection.exec_driver_sql(f"SET SESSION {setting} = {patience.lock_s}")
        connection.commit()
        with turn_in_cluster(connection, timeout_s=patience.turn_s):
            yield connection
            connection.commit()


_ALONE = {
    "sqlite": _alone_on_sqlite,
    "postgresql": _alone_on_postgresql,
    "mysql": _alone_on_mariadb,
    "mariadb": _alone_on_mariadb,
}

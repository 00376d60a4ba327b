"""Connections for maintenance, exclusive or read-only. Database errors come as one-sentence exceptions.

MariaDB's own locks are local to a node, so the nodes of a Galera cluster take turns. A turn is a row that names its
owner's node: if two nodes insert it, one of them fails certification. The owner also holds its node's lock for as long
as its session lives. So whoever holds that lock and finds a row from the same node knows that its owner is gone, and
takes over; a row from another node has to be waited for. No clock is involved.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Column, Connection, Engine, Integer, MetaData, String, Table, func, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.schema import CreateTable

from placement.errors import PlacementError, Unavailable
from placement.store.connection.engines import READ, WRITE, transactions
from placement.store.connection.faults import fault_of, first_line, passing_fault
from placement.store.journal.watched import REQUEST_VARIABLE

MAINTENANCE_KEY = 0x706C_6163_656D_6462
STATEMENT_TIMEOUT_S = 3600

Progress = Callable[[str, float], None]
"""Called with a slow step that begins, and the part of all work that is done, 0..1."""


TURN = Table(
    "placement_server_turn",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("node", String(64), nullable=False),
    Column("address", String(300), nullable=False),
)
"""Exists only while somebody has the turn."""

LOOK_EVERY_S = 0.5

_COMES_OR_GOES = {1146, 1684}
"""MariaDB's errors for a table that another session has dropped, or is creating or dropping right now."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for another process that works on the schema, and for a lock, before which others queue up."""

    turn_s: float = 600
    lock_s: float = 10


PATIENCE = Patience()


def silent(_step: str, _done: float) -> None:
    """Ignore progress."""


class MaintenanceFailed(PlacementError):
    """The database refused a statement."""


@contextmanager
def exclusively(engine: Engine, patience: Patience = PATIENCE) -> Iterator[Connection]:
    """Yield a connection in one transaction, as the only process doing maintenance; commit at the end. Requests go on.

    Unavailable if the database cannot be reached or a lock is not granted in time; MaintenanceFailed if it refuses.
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
        has_lock = connection.exec_driver_sql(
            f"SELECT GET_LOCK(LEFT(CONCAT('placement.', DATABASE()), 64), {patience.turn_s})"
        ).scalar_one()
        if not has_lock:
            raise Unavailable("Another process is working on the schema; try again.")
        for setting in ("lock_wait_timeout", "innodb_lock_wait_timeout"):
            connection.exec_driver_sql(f"SET SESSION {setting} = {patience.lock_s}")
        connection.commit()
        with turn_in_cluster(connection, timeout_s=patience.turn_s):
            yield connection
            connection.commit()


_ALONE = {"sqlite": _alone_on_sqlite, "postgresql": _alone_on_postgresql, "mysql": _alone_on_mariadb}


@contextmanager
def turn_in_cluster(connection: Connection, *, timeout_s: float) -> Iterator[None]:
    """Exclude all other nodes for the block; the caller holds this node's own lock. Unavailable after the timeout."""
    node = _node(connection)
    if node is None:
        yield
        return
    _wait(connection, node, time.monotonic() + timeout_s)
    try:
        yield
    finally:
        # A lost session has released its node's lock: the row may belong to somebody else by now.
        if not connection.invalidated:
            connection.rollback()
            TURN.drop(connection)


def _node(connection: Connection) -> str | None:
    """Return the cluster's name for this node, or None without a cluster."""
    switch = connection.exec_driver_sql("SHOW VARIABLES LIKE 'wsrep_on'").first()
    if switch is None or switch[1] != "ON":
        return None
    name: str = connection.exec_driver_sql("SHOW STATUS LIKE 'wsrep_gcomm_uuid'").one()[1]
    return name


def _wait(connection: Connection, node: str, deadline: float) -> None:
    while (owner := _owner(connection, node)) is None or owner[0] != node:
        if time.monotonic() > deadline:
            place = "another node" if owner is None else f"the node {owner[1]}"
            raise Unavailable(
                f"Another process is working on the schema through {place} of the cluster; try again. "
                f"If that process was killed, upgrade through that node, or drop the table {TURN.name}."
            )
        time.sleep(LOOK_EVERY_S)


def _owner(connection: Connection, node: str) -> tuple[str, str] | None:
    """Try to take the turn; return the owner's node and address, or None if that is undecided."""
    try:
        if not inspect(connection).has_table(TURN.name):
            connection.execute(CreateTable(TURN, if_not_exists=True))
        own_address = func.concat(text("@@hostname"), ":", text("@@port"))
        connection.execute(insert(TURN).prefix_with("IGNORE").values(id=1, node=node, address=own_address))
        connection.commit()
        turn = connection.execute(select(TURN.c.node, TURN.c.address)).first()
        connection.commit()
    except DBAPIError as error:
        connection.rollback()
        if passing_fault(error) is None and (error.orig is None or error.orig.args[0] not in _COMES_OR_GOES):
            raise
        return None
    return None if turn is None else (turn[0], turn[1])

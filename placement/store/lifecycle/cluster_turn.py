"""Whose turn it is to work on the schema of a Galera cluster, where a lock of MariaDB is known to one node alone.

The turn is a row that says at which node its owner works: of two nodes that insert it, one fails its certification. The
owner also holds the lock of its node for as long as its session lives. So whoever holds that lock and finds a row of
the same node knows that the owner is gone, and takes its place; a row of another node is waited for. No clock decides.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, func, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

from placement.errors import Unavailable
from placement.store.connection.faults import passing_fault

TURN = Table(
    "placement_server_turn",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("node", String(64), nullable=False),
    Column("address", String(300), nullable=False),
)
"""Is there only while somebody has the turn."""
LOOK_EVERY_S = 0.5

_COMES_OR_GOES = {1146, 1684}
"""What MariaDB says of a table that is dropped, or just being made or dropped, by another session."""


@contextmanager
def turn_in_cluster(connection: Connection, *, timeout_s: float) -> Iterator[None]:
    """Be the only one of all nodes; nothing to do where there is no cluster. The node's own lock is held already.

    Raises:
        Unavailable: somebody at another node was at work all the time.
    """
    node = _node(connection)
    if node is None:
        yield
        return
    _wait(connection, node, time.monotonic() + timeout_s)
    try:
        yield
    finally:
        # A session that has ended gave its lock back: the row may be somebody else's by now.
        if not connection.invalidated:
            connection.rollback()
            TURN.drop(connection)


def _node(connection: Connection) -> str | None:
    """Return the name that the cluster gave to this node."""
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
                f"If it was killed, do so through that node, or drop the table {TURN.name}."
            )
        time.sleep(LOOK_EVERY_S)


def _owner(connection: Connection, node: str) -> tuple[str, str] | None:
    """Try to take the turn; return the node, and its address, of whoever has it, or None where that is open."""
    try:
        if not inspect(connection).has_table(TURN.name):
            connection.execute(CreateTable(TURN, if_not_exists=True))
        here = func.concat(text("@@hostname"), ":", text("@@port"))
        connection.execute(insert(TURN).prefix_with("IGNORE").values(id=1, node=node, address=here))
        connection.commit()
        found = connection.execute(select(TURN.c.node, TURN.c.address)).first()
        connection.commit()
    except DBAPIError as error:
        connection.rollback()
        if passing_fault(error) is None and (error.orig is None or error.orig.args[0] not in _COMES_OR_GOES):
            raise
        return None
    return None if found is None else (found[0], found[1])

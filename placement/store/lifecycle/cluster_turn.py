"""Take turns working on the schema of a Galera cluster, where MariaDB's own locks are local to a node.

The turn is a row naming its owner's node: if two nodes insert it, one of them fails certification. The owner also holds
its node's lock for as long as its session lives. So whoever holds that lock and finds a row from the same node knows
that its owner is gone, and takes over; a row from another node has to be waited for. No clock is involved.
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
"""Exists only while somebody has the turn."""
LOOK_EVERY_S = 0.5

_COMES_OR_GOES = {1146, 1684}
"""MariaDB's errors for a table that another session has dropped, or is creating or dropping right now."""


@contextmanager
def turn_in_cluster(connection: Connection, *, timeout_s: float) -> Iterator[None]:
    """Exclude all other nodes for the block; a no-op without a cluster. The caller holds this node's own lock already.

    Raises:
        Unavailable: another node kept the turn until the timeout.
    """
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
                f"If it was killed, do so through that node, or drop the table {TURN.name}."
            )
        time.sleep(LOOK_EVERY_S)


def _owner(connection: Connection, node: str) -> tuple[str, str] | None:
    """Try to take the turn; return the owner's node and address, or None if that is undecided."""
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

"""Decide whether a standby can serve reads: it is reachable, has the schema being served, and does not lag far behind.

Lag is measured by log position, not by time: an idle primary leaves old timestamps, and clocks differ.
"""

import time
from typing import Any

from sqlalchemy import Engine, text

from placement.errors import PlacementError
from placement.store.connection.database import Database
from placement.store.connection.standby import Standby
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.completeness import note
from placement.store.lifecycle.health import Health, health
from placement.store.lifecycle.maintenance import looking

MAX_BEHIND_S = 5.0
BEHIND = f"it is more than {MAX_BEHIND_S:.0f} seconds behind"
PAUSE_S = 0.1

_WAL = (
    "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END"  # ELSE: promoted
)
_POSITION = {"postgresql": f"SELECT CAST({_WAL} AS text)", "mysql": "SELECT @@GLOBAL.gtid_binlog_pos"}
_HAS_REACHED = {
    "postgresql": f"SELECT {_WAL} >= CAST(:position AS pg_lsn)",
    "mysql": "SELECT MASTER_GTID_WAIT(:position, 0) = 0",
}


def standby_of(primary: Database, engine: Engine) -> Standby:
    """Return a database's standby. It does not connect yet, so that a server starts even if its standby is down."""
    standby = Database(engine, attempts=1)
    standby.primary = primary
    return Standby(standby, lambda: what_is_wrong(primary.engine, standby))


def what_is_wrong(primary: Engine, standby: Database) -> str | None:
    """Say why a standby must not serve reads, or None; update what its triggers are good for."""
    position = _position(primary)
    try:
        health = _health(standby)
        if health.triggers is not None:
            note(standby, health.triggers)
            return None if position is None or _follows(standby.engine, position) else BEHIND
    except PlacementError as error:
        return str(error)
    return health.problem


def _health(standby: Database) -> Health:
    with looking(standby.engine) as connection:
        return health(Transaction(connection, standby))


def _position(primary: Engine) -> Any:
    """Return the primary's log position, or None if it cannot be had, perhaps because the primary is down."""
    try:
        with looking(primary) as connection:
            return connection.execute(text(_POSITION[_kind(primary)])).scalar_one()
    except PlacementError:
        return None


def _follows(standby: Engine, position: Any) -> bool:
    """Tell whether a standby catches up with a position in time."""
    deadline = time.monotonic() + MAX_BEHIND_S
    while True:
        # A new transaction each time: an open one would hold up replay.
        with looking(standby) as connection:
            if connection.execute(text(_HAS_REACHED[_kind(standby)]), {"position": position}).scalar_one():
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_S)


def _kind(engine: Engine) -> str:
    return "mysql" if engine.dialect.name == "mariadb" else engine.dialect.name

"""A standby that replicates the database: it serves reads that may be slightly stale, and so offloads the primary.

Its health is checked in the background, never by a request.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.errors import PlacementError
from placement.store.connection.database import Database, Transaction
from placement.store.connection.faults import DEADLOCK, SERIALIZATION, fault_of
from placement.store.journal.triggers import note
from placement.store.lifecycle.maintenance import looking
from placement.store.lifecycle.schema import health

LOG = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
VALID_S = 15.0
"""How long a healthy result stays valid; a check runs every LOOK_EVERY_S as long as there are requests."""

BROKEN = "a statement failed there"


class Standby:
    """The standby of a database; ``look`` says what is wrong with it, if anything, and may take seconds."""

    def __init__(
        self, database: Database, look: Callable[[], str | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.database = database
        self._look = look
        self._clock = clock
        self._look_at = self._good_until = clock()
        self._problem: str | None = ""  # not checked yet

    def may_serve(self) -> bool:
        """Tell whether the last check still allows reads; start another check in the background if one is due."""
        now = self._clock()
        if now >= self._look_at:
            # A race between two threads costs a second check, which is harmless; a lock would have to survive a fork.
            self._look_at = now + LOOK_EVERY_S
            threading.Thread(target=self.examine, name="standby", daemon=True).start()
        return now < self._good_until

    def examine(self) -> None:
        """Check the standby's health now."""
        begun = self._clock()
        self._look_at = begun + LOOK_EVERY_S
        problem = self._look()
        self._good_until = begun if problem else begun + VALID_S
        self._note(problem)

    def failed(self, error: DBAPIError | PoolTimeout) -> None:
        """Note a failed read, and stop using the standby until the next check unless the failure was transient."""
        if isinstance(error, PoolTimeout) or fault_of(error) in (SERIALIZATION, DEADLOCK):
            return  # The pool is exhausted, or replication cancelled the read: the standby is fine.
        self._good_until = self._clock()
        self.database.engine.dispose()
        self._note(BROKEN)

    def _note(self, problem: str | None) -> None:
        """Log when the standby comes into use or goes out of use, not every request in between."""
        before, self._problem = self._problem, problem
        if problem is None and before is not None:
            LOG.info("The standby is in use: candidates, explanations and bulk reads are served there.")
        elif problem is not None and not before:
            LOG.warning("The standby is not in use, the primary serves every request: %s", problem)


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
        with looking(standby.engine) as connection:
            problem, triggers = health(Transaction(connection, standby))
        if triggers is not None:
            note(standby, triggers)
            return None if position is None or _follows(standby.engine, position) else BEHIND
    except PlacementError as error:
        return str(error)
    return problem


def _position(primary: Engine) -> Any:
    """Return the primary's log position, or None if it cannot be had, perhaps because the primary is down."""
    try:
        with looking(primary) as connection:
            return connection.execute(text(_POSITION[primary.dialect.name])).scalar_one()
    except PlacementError:
        return None


def _follows(standby: Engine, position: Any) -> bool:
    """Tell whether a standby catches up with a position in time."""
    deadline = time.monotonic() + MAX_BEHIND_S
    while True:
        # A new transaction each time: an open one would hold up replay.
        with looking(standby) as connection:
            if connection.execute(text(_HAS_REACHED[standby.dialect.name]), {"position": position}).scalar_one():
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_S)

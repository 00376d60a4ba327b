"""A standby that follows the database: reads that may be a moment old are served there, and spare the primary.

Whether it can be read from is looked at beside the requests, never by one of them.
"""

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from placement.store.connection.database import Database
from placement.store.connection.faults import DEADLOCK, SERIALIZATION, fault_of

LOG = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
VALID_S = 15.0
"""How long it is read from without another look: one is made every LOOK_EVERY_S, while there are requests."""

BROKEN = "a statement failed there"


class Standby:
    """The standby of a database.

    Args:
        database: the standby, opened.
        look: tells what is wrong with it, or None; it may take seconds.
        clock: counts seconds.
    """

    def __init__(
        self, database: Database, look: Callable[[], str | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.database = database
        self._look = look
        self._clock = clock
        self._look_at = self._good_until = clock()
        self._problem: str | None = ""  # nobody has looked yet

    def may_serve(self) -> bool:
        """Tell whether it can be read from, as far as the last look told; begin another one where that is due."""
        now = self._clock()
        if now >= self._look_at:
            # Two threads may come here at once; two looks do no harm, and no lock has to survive a fork.
            self._look_at = now + LOOK_EVERY_S
            threading.Thread(target=self.examine, name="standby", daemon=True).start()
        return now < self._good_until

    def examine(self) -> None:
        """Look now."""
        begun = self._clock()
        self._look_at = begun + LOOK_EVERY_S
        problem = self._look()
        self._good_until = begun if problem else begun + VALID_S
        self._note(problem)

    def failed(self, error: DBAPIError | PoolTimeout) -> None:
        """Take note that a read failed, and give the standby up until the next look unless it was bad luck."""
        if isinstance(error, PoolTimeout) or fault_of(error) in (SERIALIZATION, DEADLOCK):
            return  # All connections are busy, or what the primary changed had to go before the read was done.
        self._good_until = self._clock()
        self.database.engine.dispose()
        self._note(BROKEN)

    def _note(self, problem: str | None) -> None:
        """Log when it comes into use and when it goes out of use, not at each request between."""
        before, self._problem = self._problem, problem
        if problem is None and before is not None:
            LOG.info("The standby is in use: candidates, explanations and bulk reads are served there.")
        elif problem is not None and not before:
            LOG.warning("The standby is not in use, the primary serves every request: %s", problem)

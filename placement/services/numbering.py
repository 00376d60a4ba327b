"""Number the rows of MariaDB's journal in the background, for readers who cannot write in their snapshots."""

import logging
import random
import threading
from collections.abc import Callable

from placement.services.journal import put_in_order
from placement.store.connection.database import Database

LOG = logging.getLogger(__name__)

TOLERATED = 50
"""With more rows than so many without numbers, it costs less to number them than to remember them."""

PAUSE_S = 60.0
"""After a failure, it is left to others for so long."""

THREAD = "numbering"


class BackgroundNumbering:
    """Numbers the rows of one database, in one thread at a time.

    Args:
        clock: the time in seconds, from any moment on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.tolerates = random.randint(TOLERATED, 2 * TOLERATED)  # noqa: S311 - of many workers, usually one begins
        """With more rows than so many without numbers, a reader should begin."""
        self._clock = clock
        self._busy = threading.Lock()
        self._paused_until = clock()

    def begin(self, database: Database) -> None:
        """Begin, for a standby on its primary, unless it is under way or has just failed."""
        if self._clock() >= self._paused_until and self._busy.acquire(blocking=False):
            where = database.primary or database
            threading.Thread(target=self._number, args=(where,), name=THREAD, daemon=True).start()

    def _number(self, database: Database) -> None:
        try:
            put_in_order(database)
        except Exception as error:
            self._paused_until = self._clock() + PAUSE_S
            LOG.info("The journal's rows could not be numbered: %s", error)
        finally:
            self._busy.release()

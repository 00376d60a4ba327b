"""Whether this server is able to work."""

import threading
from concurrent.futures import Future

from placement.store.connection import faults
from placement.store.connection.database import Database, reads, reads_once
from placement.store.connection.faults import DatabaseFailed
from placement.store.journal.triggers import note
from placement.store.lifecycle import schema as store
from placement.store.lifecycle.schema import Health, health

UNREACHABLE = "the database cannot be reached"
SILENT = "the database does not answer within a second"
WITHIN_S = 1.0


_health = reads(health)


connection_limit = reads_once(store.connection_limit)


class Readiness:
    """Tells within WITHIN_S whether the database is what this release needs; one thread asks for all."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._pending: Future[Health] | None = None

    def health(self) -> Health:
        """Return what is wrong with the database, if anything."""
        with self._guard:
            pending = self._pending
            if pending is None or pending.done():
                pending = self._pending = Future()
                threading.Thread(target=self._ask, args=(pending,), name="readiness", daemon=True).start()
        try:
            return pending.result(WITHIN_S)
        except TimeoutError:
            return Health(SILENT)

    def _ask(self, pending: "Future[Health]") -> None:
        try:
            pending.set_result(readiness(self._database))
        except BaseException as error:
            pending.set_exception(error)


def readiness(database: Database) -> Health:
    """Tell whether the database answers and holds what this release needs.

    Without triggers the server sums usage and caches nothing: correct, but slower. It goes by them once they are back.
    """
    try:
        state = _health(database.prober or database)
    except DatabaseFailed as error:
        return Health(UNREACHABLE if error.fault is faults.UNREACHABLE else f"the database fails: {error.fault.cause}")
    if state.triggers is not None:
        note(database, state.triggers)
    return state

"""Whether this server is able to work."""

from placement.store.connection import faults
from placement.store.connection.database import Database
from placement.store.connection.faults import DatabaseFailed
from placement.store.connection.unit_of_work import Transaction, reads, reads_once
from placement.store.journal.completeness import note
from placement.store.lifecycle import health as store
from placement.store.lifecycle.health import Health, health

UNREACHABLE = "the database cannot be reached"


@reads
def _health(tx: Transaction) -> Health:
    return health(tx)


@reads_once
def connection_limit(tx: Transaction) -> int | None:
    """Return the database's limit on connections from all clients together, or None if it has none."""
    return store.connection_limit(tx)


def readiness(database: Database) -> Health:
    """Tell whether the database answers and holds what this release needs.

    Missing triggers do not stop the server: it sums usage and caches nothing, which is slower but correct. Once
    they are back it returns to kept usage, because installing them counts everything again.
    """
    try:
        found = _health(database)
    except DatabaseFailed as error:
        return Health(UNREACHABLE if error.fault is faults.UNREACHABLE else f"the database fails: {error.fault.cause}")
    if found.triggers is not None:
        note(database, found.triggers)
    return found

"""Whether this server is able to work."""

import logging

from placement.store.connection import faults
from placement.store.connection.database import Database
from placement.store.connection.faults import DatabaseFailed
from placement.store.connection.unit_of_work import Transaction, reads, reads_once
from placement.store.lifecycle import health as store
from placement.store.lifecycle.health import Health, health

LOG = logging.getLogger(__name__)

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

    Missing triggers do not stop the server: as soon as it notices, it sums usage at each request, which is slower but
    correct. Once they are back it returns to kept usage, because installing them counts everything again.
    """
    try:
        found = _health(database)
    except DatabaseFailed as error:
        return Health(UNREACHABLE if error.fault is faults.UNREACHABLE else f"the database fails: {error.fault.cause}")
    if found.problem is None and found.keeps_usage != database.keeps_usage:
        database.keeps_usage = found.keeps_usage
        if found.keeps_usage:
            LOG.info("The triggers that keep usage are in place again; usage is read from the kept sums.")
        else:
            LOG.warning(
                "The triggers that keep usage are missing; usage is summed at each request. Run 'placement db upgrade'."
            )
    return found

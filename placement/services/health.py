"""Whether this server can do its work."""

from placement.errors import Unavailable
from placement.store import health
from placement.store.database import Database
from placement.store.unit_of_work import Transaction, reads


@reads
def _answers(tx: Transaction) -> bool:
    return health.has_schema(tx)


def is_ready(database: Database) -> bool:
    """Tell whether the database answers and holds our tables."""
    try:
        return _answers(database)
    except Unavailable:
        return False

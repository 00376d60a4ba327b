"""Everything about many providers at once, for dashboards and exporters."""

from placement.domain.provider import ProviderFilter
from placement.services.journal import put_in_order
from placement.services.providers import ids_in_filter
from placement.store import bulk_read as store
from placement.store.bulk_read import BulkRead
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.provider_list import conditions_of

__all__ = ["BulkRead", "read_inventory"]


def read_inventory(database: Database, wanted: ProviderFilter) -> BulkRead:
    """Return the providers that pass a filter with their inventory, usage, traits and aggregates, in one snapshot.

    Raises:
        Invalid: the filter names a resource class or trait that does not exist.
    """
    if database.keeps_journal:
        put_in_order(database)
    return _read(database, wanted)


@reads_anywhere
def _read(tx: Transaction, wanted: ProviderFilter) -> BulkRead:
    classes, traits = ids_in_filter(tx, wanted)
    return store.bulk_read(tx, conditions_of(tx, wanted, class_ids=classes, trait_ids=traits))

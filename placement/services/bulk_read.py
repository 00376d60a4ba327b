"""Everything about many providers at once: for dashboards and exporters, and for this server's metrics."""

from collections.abc import Collection

from placement.domain.provider import ProviderFilter
from placement.services.journal import put_in_order
from placement.services.providers import ids_in_filter
from placement.store import bulk_read as store
from placement.store.bulk_read import AllocationRow, BulkRead, CapacityRow, allocation_rows, capacity_rows
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads_anywhere, reads_once
from placement.store.marks import hosts_in
from placement.store.provider_list import conditions_of


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


@reads_once
def capacity(tx: Transaction) -> list[CapacityRow]:
    """Return one row for each provider and each class that it has inventory of."""
    return capacity_rows(tx)


@reads_once
def allocations(tx: Transaction) -> list[AllocationRow]:
    """Return one row for each consumer, provider and class."""
    return allocation_rows(tx)


@reads_once
def trees_in(tx: Transaction, aggregates: Collection[str]) -> dict[str, list[int]]:
    """Map each aggregate to the roots of its trees."""
    return hosts_in(tx, aggregates)

"""Inventory, usage and allocations of all providers, in one query each."""

from sqlalchemy import Select, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.stock import StockSource
from placement.store.tables import allocations, inventories, resource_classes, resource_providers

CapacityRow = tuple[str, str, int, float, int, int, int]
"""Provider name, resource class name, total, allocation ratio, reserved, used, the provider's generation."""

AllocationRow = tuple[str, str, str, int]
"""Provider name, consumer uuid, resource class name, amount."""

_NAME = func.coalesce(resource_providers.c.name, resource_providers.c.uuid)


def _rows(*, keeps_usage: bool) -> Select[CapacityRow]:
    stock = StockSource(keeps_usage=keeps_usage)
    columns = inventories.c
    named = inventories.join(resource_providers, resource_providers.c.id == columns.resource_provider_id).join(
        resource_classes, resource_classes.c.id == columns.resource_class_id
    )
    return (
        select(
            _NAME,
            resource_classes.c.name,
            columns.total,
            columns.allocation_ratio,
            columns.reserved,
            stock.used,
            func.coalesce(resource_providers.c.generation, 0),
        )
        .select_from(stock.with_usage(named))
        .order_by(resource_providers.c.id, resource_classes.c.id)
    )


_ALLOCATIONS = (
    select(_NAME, allocations.c.consumer_id, resource_classes.c.name, allocations.c.used)
    .select_from(
        allocations.join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id).join(
            resource_classes, resource_classes.c.id == allocations.c.resource_class_id
        )
    )
    .order_by(allocations.c.id)
)

_ROWS = {keeps_usage: _rows(keeps_usage=keeps_usage) for keeps_usage in (True, False)}


def capacity_rows(tx: Transaction) -> list[CapacityRow]:
    """Return every provider's stock of every class, in the order of their ids."""
    return tx.tuples(_ROWS[tx.database.keeps_usage])


def allocation_rows(tx: Transaction) -> list[AllocationRow]:
    """Return every allocation, oldest first."""
    return tx.tuples(_ALLOCATIONS)

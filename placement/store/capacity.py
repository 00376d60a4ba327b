"""Inventory and usage of all providers in one query."""

from sqlalchemy import Select, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.stock import StockSource
from placement.store.tables import inventories, resource_classes, resource_providers

CapacityRow = tuple[str, str, int, float, int, int]
"""Provider name, resource class name, total, allocation ratio, reserved, used."""


def _rows(*, keeps_usage: bool) -> Select[CapacityRow]:
    stock = StockSource(keeps_usage=keeps_usage)
    columns = inventories.c
    named = inventories.join(resource_providers, resource_providers.c.id == columns.resource_provider_id).join(
        resource_classes, resource_classes.c.id == columns.resource_class_id
    )
    return (
        select(
            func.coalesce(resource_providers.c.name, resource_providers.c.uuid),
            resource_classes.c.name,
            columns.total,
            columns.allocation_ratio,
            columns.reserved,
            stock.used,
        )
        .select_from(stock.with_usage(named))
        .order_by(resource_providers.c.id, resource_classes.c.id)
    )


_ROWS = {keeps_usage: _rows(keeps_usage=keeps_usage) for keeps_usage in (True, False)}


def capacity_rows(tx: Transaction) -> list[CapacityRow]:
    """Return every provider's stock of every class, in the order of their ids."""
    return tx.tuples(_ROWS[tx.database.keeps_usage])

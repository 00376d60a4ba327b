"""Capacity and usage of the whole cloud, for monitoring."""

from placement.store.capacity import CapacityRow, capacity_rows
from placement.store.connection.unit_of_work import Transaction, reads_once

__all__ = ["CapacityRow", "capacity"]


@reads_once
def capacity(tx: Transaction) -> list[CapacityRow]:
    """Return one row for each provider and each class that it has inventory of."""
    return capacity_rows(tx)

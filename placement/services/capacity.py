"""What the whole cloud has and what of it is used, for those who watch it."""

from placement.store.capacity import CapacityRow, capacity_rows
from placement.store.connection.unit_of_work import Transaction, reads_once

__all__ = ["CapacityRow", "capacity"]


@reads_once
def capacity(tx: Transaction) -> list[CapacityRow]:
    """Return one row for each provider and resource class with inventory."""
    return capacity_rows(tx)

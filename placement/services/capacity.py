"""What the whole cloud has and what of it is used, for those who watch it."""

from placement.store.capacity import CapacityRow, capacity_rows
from placement.store.connection.unit_of_work import Transaction, looks_up

__all__ = ["CapacityRow", "capacity"]


@looks_up
def capacity(tx: Transaction) -> list[CapacityRow]:
    """Return one row for each provider and resource class with inventory."""
    return capacity_rows(tx)

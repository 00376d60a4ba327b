"""Capacity and usage of the whole cloud, for monitoring."""

from collections.abc import Collection

from placement.store.aggregates import hosts_in
from placement.store.capacity import AllocationRow, CapacityRow, allocation_rows, capacity_rows
from placement.store.connection.unit_of_work import Transaction, reads_once

__all__ = ["AllocationRow", "CapacityRow", "allocations", "capacity", "trees_in"]


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

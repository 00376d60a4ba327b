"""The stocks of providers and trees by resource class, summed in SQL: columns have no totals and reserved amounts."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

import os_traits
from sqlalchemy import BigInteger, ColumnElement, FromClause, cast, func, select

from placement.store.connection.database import Transaction
from placement.store.journal.order import J
from placement.store.journal.watched import ALLOCATION
from placement.store.providers import RP
from placement.store.stock import StockSource
from placement.store.tables import inventories, resource_providers

INV = inventories.c

DISABLED: str = os_traits.COMPUTE_STATUS_DISABLED
"""The trait that nova puts on the root of a host whose compute service is disabled."""


class ClassTotals(NamedTuple):
    """The totals of a resource class, in its units; ``capacity`` is what may be allocated."""

    class_name: str
    total: int
    reserved: int
    capacity: int
    used: int

    @property
    def set_aside(self) -> float:
        """The reserved amount in terms of capacity: times the allocation ratio, as if all had the average one.

        A negative amount adds to the capacity instead.
        """
        usable, reserved = self.total - self.reserved, max(0, self.reserved)
        return reserved * self.capacity / usable if usable > 0 else reserved

    @property
    def free(self) -> int:
        """What is left, never negative."""
        return max(0, self.capacity - self.used)


class StockSums(NamedTuple):
    """The columns to sum, and their source: inventories with their providers and usage."""

    source: FromClause
    capacity: ColumnElement[int]
    used: ColumnElement[int]

    @property
    def sums(self) -> tuple[ColumnElement[Any], ...]:
        """The sums of total, reserved, capacity and used."""
        return summed(INV.total), summed(INV.reserved), summed(self.capacity), summed(self.used)


def amounts(tx: Transaction) -> StockSums:
    """Return the source and the columns of sums."""
    stock = StockSource(keeps_usage=tx.database.keeps_usage)
    owned = inventories.join(resource_providers, RP.id == INV.resource_provider_id)
    return StockSums(stock.with_usage(owned), cast(stock.usable_capacity, BigInteger), stock.used)


def summed(column: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the sum of a column as an integer: databases sum integers to decimals."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


def stocks_of_trees(tx: Transaction, root_ids: Collection[int]) -> dict[int, list[ClassTotals]]:
    """Return the stocks of trees, by root id."""
    return _stocks_by(tx, RP.root_provider_id, root_ids)


def stocks_of_providers(tx: Transaction, provider_ids: Collection[int]) -> dict[int, list[ClassTotals]]:
    """Return the providers' own stocks, by id."""
    return _stocks_by(tx, RP.id, provider_ids)


def _stocks_by(tx: Transaction, key: ColumnElement[int], ids: Collection[int]) -> dict[int, list[ClassTotals]]:
    if not ids:
        return {}
    have = amounts(tx)
    query = (
        select(key, INV.resource_class_id, *have.sums)
        .select_from(have.source)
        .where(key.in_(sorted(ids)))
        .group_by(key, INV.resource_class_id)
        .order_by(key, INV.resource_class_id)
    )
    rows = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[1] for row in rows})
    totals: dict[int, list[ClassTotals]] = defaultdict(list)
    for id_, class_id, *sums in rows:
        totals[id_].append(ClassTotals(names[class_id], *map(int, sums)))
    return totals


class ClassSums(NamedTuple):
    """The sums of a resource class over all providers, as operators wrote them."""

    total: int
    reserved: int


def sums_by_class(tx: Transaction) -> dict[int, ClassSums]:
    """Return the total and the reserved amount of each class, by id."""
    query = select(INV.resource_class_id, summed(INV.total), summed(INV.reserved)).group_by(INV.resource_class_id)
    return {class_id: ClassSums(int(total), int(reserved)) for class_id, total, reserved in tx.tuples(query)}


MAX_CHANGES = 200_000
"""The most journal rows that are added up to look back."""


def used_since(tx: Transaction, class_name: str, time: datetime) -> dict[int, int] | None:
    """Return the growth of a class's usage since a time, by tree; None if there are too many changes.

    The cost grows with the number of changes, up to MAX_CHANGES.
    """
    class_id = tx.names.classes.ids(tx.connection, [class_name]).get(class_name)
    rows = (
        select(J.root_provider_id, J.old_amount, J.new_amount)
        .where(J.time >= time, J.kind == ALLOCATION, J.resource_class_id == class_id)
        .limit(MAX_CHANGES + 1)
        .subquery("rows")
    )
    grown = func.coalesce(rows.c.new_amount, 0) - func.coalesce(rows.c.old_amount, 0)
    query = select(rows.c.root_provider_id, cast(func.sum(grown), BigInteger), func.count()).group_by(
        rows.c.root_provider_id
    )
    sums = tx.tuples(query)
    if sum(count for _root, _grown, count in sums) > MAX_CHANGES:
        return None
    return {root: int(amount) for root, amount, _count in sums if root is not None}

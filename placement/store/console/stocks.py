"""The stocks of providers and trees by resource class, summed in SQL, and the hosts that nova has disabled."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple

import os_traits
from sqlalchemy import BigInteger, ColumnElement, FromClause, Select, case, cast, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import RP
from placement.store.search.ranges import HAS_ROOT
from placement.store.stock import StockSource, stock_by_tree
from placement.store.tables import inventories, resource_provider_traits, resource_providers

INV = inventories.c

DISABLED: str = os_traits.COMPUTE_STATUS_DISABLED
"""The trait that nova puts on the root of a host whose compute service is disabled."""

_HAS = resource_provider_traits.c


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
        given, reserved = self.total - self.reserved, max(0, self.reserved)
        return reserved * self.capacity / given if given > 0 else reserved

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


def per_tree_and_class(tx: Transaction) -> Select[Any]:
    """Return a query for (root_id, class_id, capacity, used) of all trees."""
    has = stock_by_tree(keeps_usage=tx.database.keeps_usage).c
    return select(
        has.root_provider_id.label("root_id"),
        has.resource_class_id.label("class_id"),
        # If more is reserved than there is, the capacity is zero rather than negative.
        summed(case((has.capacity > 0, has.capacity), else_=0)).label("capacity"),
        summed(has.used).label("used"),
    ).group_by(has.root_provider_id, has.resource_class_id)


def with_disabled(tx: Transaction) -> Select[tuple[int]]:
    """Return a query for the providers that have the trait."""
    trait = tx.names.traits.ids(tx.connection, [DISABLED]).get(DISABLED)
    return select(_HAS.resource_provider_id).where(_HAS.trait_id == trait)


def disabled_hosts(tx: Transaction) -> set[int]:
    """Return the roots of the trees in which any provider has the trait."""
    query = select(RP.root_provider_id).where(RP.id.in_(with_disabled(tx)), HAS_ROOT).distinct()
    return {root for (root,) in tx.tuples(query)}

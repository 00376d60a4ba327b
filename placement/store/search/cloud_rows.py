"""Reads the rows that the columns of a cloud are made of: all of them, or those of some trees."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Double, Select, bindparam, cast, func, select

from placement.cloud.columns import NO_PARENT, NO_ROWS, CloudRows
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import is_of_roots
from placement.store.stock import StockSource
from placement.store.tables import resource_providers

_RP = resource_providers.c


def cloud_rows(tx: Transaction, roots: Collection[int] | None = None) -> CloudRows:
    """Return the providers of trees, and their stocks. Two statements.

    A provider without a root, as releases of openstack-placement before Rocky left them, is in no tree.

    Args:
        tx: the transaction.
        roots: the ids of the roots of these trees; None for all trees.
    """
    if roots is not None and not roots:
        return NO_ROWS
    listed = {} if roots is None else {"roots": sorted(roots)}
    stocks = _stocks(keeps_usage=tx.database.keeps_usage, listed=roots is not None)
    return CloudRows(tx.tuples(_providers(listed=roots is not None), listed), tx.tuples(stocks, listed))


@lru_cache(maxsize=2)
def _providers(*, listed: bool) -> PreparedStatement:
    parent = func.coalesce(_RP.parent_provider_id, NO_PARENT)
    statement = select(_RP.root_provider_id, _RP.id, parent).where(_RP.root_provider_id.is_not(None))
    if listed:
        statement = statement.where(_RP.root_provider_id.in_(bindparam("roots", expanding=True)))
    return PreparedStatement(statement, by_key=listed)


@lru_cache(maxsize=4)
def _stocks(*, keeps_usage: bool, listed: bool) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    has = stock.inventory.c
    statement: Select[Any] = select(
        has.resource_provider_id,
        has.resource_class_id,
        cast(stock.capacity, Double),
        cast(stock.used, BigInteger),
        has.min_unit,
        has.max_unit,
        has.step_size,
    ).select_from(stock.rows)
    if listed:
        statement = statement.where(is_of_roots(has.resource_provider_id))
    return PreparedStatement(statement, by_key=listed)

"""What the planner reads about many trees at once: their places, and what is left in them."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Double, bindparam, case, cast, func, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import HAS_ROOT, LISTED, is_between
from placement.store.stock import StockSource, stock_by_tree
from placement.store.tables import inventories, resource_provider_traits, resource_providers

_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c


def places(
    tx: Transaction, trait_ids: Sequence[int], roots: Collection[int] | None = None
) -> list[tuple[int, int | None, int, int]]:
    """Return (provider, parent, root, trait) for every provider that has any of these traits.

    ``roots`` selects trees; None means all.
    """
    if not trait_ids:
        return []
    values = {"traits": list(trait_ids), **({} if roots is None else {"roots": list(roots)})}
    return tx.tuples(_places(everywhere=roots is None), values)


def parents_of(tx: Transaction, providers: Collection[int]) -> list[tuple[int, int | None]]:
    """Return (provider, parent) for some providers; others with ids in between may be included."""
    return tx.tuples(_parents(listed=_is_listed(providers)), _values(providers)) if providers else []


def free_amounts(tx: Transaction, class_ids: Sequence[int]) -> dict[int, float]:
    """Return how much all providers together have left of each class."""
    if not class_ids:
        return {}
    return dict(tx.tuples(_free(keeps_usage=tx.database.keeps_usage), {"classes": list(class_ids)}))


def free_by_provider(tx: Transaction, class_ids: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (provider, class, amount left) for all providers; the amount is negative for one over capacity."""
    return tx.tuples(_free_by_provider(keeps_usage=tx.database.keeps_usage), {"classes": list(class_ids)})


def free_by_tree(tx: Transaction, class_ids: Sequence[int]) -> list[tuple[int, int, float]]:
    """Return (root, class, amount left by its providers) for all trees that have inventory of the class."""
    if not class_ids:
        return []
    return tx.tuples(_free_by_tree(keeps_usage=tx.database.keeps_usage), {"classes": list(class_ids)})


def _is_listed(ids: Collection[int]) -> bool:
    return len(ids) <= LISTED


def _values(ids: Collection[int]) -> dict[str, Any]:
    return {"ids": sorted(ids)} if _is_listed(ids) else {"first": min(ids), "last": max(ids)}


def _among(column: Any, *, listed: bool) -> Any:
    return column.in_(bindparam("ids", expanding=True)) if listed else is_between(column, "first", "last")


@lru_cache(maxsize=2)
def _parents(*, listed: bool) -> PreparedStatement:
    return PreparedStatement(select(_RP.id, _RP.parent_provider_id).where(_among(_RP.id, listed=listed)))


@lru_cache(maxsize=2)
def _places(*, everywhere: bool) -> PreparedStatement:
    statement = (
        select(_RP.id, _RP.parent_provider_id, _RP.root_provider_id, _HAS.trait_id)
        .select_from(resource_provider_traits.join(resource_providers, _RP.id == _HAS.resource_provider_id))
        .where(_HAS.trait_id.in_(bindparam("traits", expanding=True)), HAS_ROOT)
    )
    if not everywhere:
        statement = statement.where(_RP.root_provider_id.in_(bindparam("roots", expanding=True)))
    return PreparedStatement(statement)


@lru_cache(maxsize=2)
def _free(*, keeps_usage: bool) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    return PreparedStatement(
        select(_INV.resource_class_id, _summed_up(stock))
        .select_from(stock.rows)
        .where(_INV.resource_class_id.in_(bindparam("classes", expanding=True)))
        .group_by(_INV.resource_class_id)
    )


@lru_cache(maxsize=2)
def _free_by_provider(*, keeps_usage: bool) -> PreparedStatement:
    stock = stock_by_tree(keeps_usage=keeps_usage).c
    left = cast(stock.capacity - stock.used, BigInteger)
    return PreparedStatement(
        select(stock.resource_provider_id, stock.resource_class_id, left).where(
            stock.resource_class_id.in_(bindparam("classes", expanding=True))
        )
    )


@lru_cache(maxsize=2)
def _free_by_tree(*, keeps_usage: bool) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    return PreparedStatement(
        select(_RP.root_provider_id, _INV.resource_class_id, _summed_up(stock))
        .select_from(stock.with_usage(stock.inventory.join(resource_providers, _RP.id == _INV.resource_provider_id)))
        .where(_INV.resource_class_id.in_(bindparam("classes", expanding=True)), HAS_ROOT)
        .group_by(_RP.root_provider_id, _INV.resource_class_id)
    )


def _summed_up(stock: StockSource) -> Any:
    # A provider over capacity must not reduce what the others have left.
    return cast(func.sum(case((stock.left > 0, stock.left), else_=0)), Double)

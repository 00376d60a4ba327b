"""What the planner wants to know of provider trees besides who can serve what: names, places, what is left."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Double, bindparam, case, cast, func, or_, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import is_between
from placement.store.search.summaries import LISTED
from placement.store.stock import StockSource, stock_by_tree
from placement.store.tables import inventories, resource_provider_traits, resource_providers

_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c


def provider_names(tx: Transaction, roots: Collection[int]) -> dict[int, str]:
    """Return the names of all providers of trees."""
    rows = tx.tuples(_names(listed=_is_listed(roots)), _values(roots))
    return {id_: name or uuid for id_, name, uuid, root in rows if root in roots}


UnitRules = Mapping[tuple[int, int], tuple[int, int, int]]
"""(min_unit, max_unit, step_size) by provider and class."""


def unit_rules(tx: Transaction, roots: Collection[int]) -> UnitRules:
    """Return the unit rules of all inventories of trees, and perhaps of others in between."""
    return _by_inventory(tx.tuples(_units(listed=_is_listed(roots)), _values(roots)))


def unusual_unit_rules(tx: Transaction, roots: Collection[int], class_ids: Collection[int]) -> UnitRules:
    """Return the unit rules of those inventories of some classes of which one cannot be taken alone, likewise."""
    values = {**_values(roots), "classes": sorted(class_ids)}
    return _by_inventory(tx.tuples(_unusual_units(listed=_is_listed(roots)), values))


def _by_inventory(rows: Iterable[tuple[int, int, int, int, int]]) -> UnitRules:
    return {(provider, class_id): (least, most, step) for provider, class_id, least, most, step in rows}


def places(tx: Transaction, trait_ids: Sequence[int]) -> list[tuple[int, int | None, int, int]]:
    """Return (provider, parent, root, trait) for every provider that has any of these traits."""
    return tx.tuples(_PLACES, {"traits": list(trait_ids)}) if trait_ids else []


def parents_of(tx: Transaction, providers: Collection[int]) -> list[tuple[int, int | None]]:
    """Return (provider, parent) for some providers, and perhaps for others in between."""
    return tx.tuples(_parents(listed=_is_listed(providers)), _values(providers)) if providers else []


def roots_of(tx: Transaction, providers: Collection[int]) -> dict[int, int]:
    """Return the root of the tree of each of some providers, and perhaps of others in between."""
    return dict(tx.tuples(_roots(listed=_is_listed(providers)), _values(providers))) if providers else {}


def free_amounts(tx: Transaction, class_ids: Sequence[int]) -> dict[int, float]:
    """Return how much of classes all providers together have left."""
    if not class_ids:
        return {}
    return dict(tx.tuples(_free(keeps_usage=tx.database.keeps_usage), {"classes": list(class_ids)}))


def free_by_provider(tx: Transaction, class_ids: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (provider, class, how much is left) of all providers; less than nothing of one that gave too much away."""
    return tx.tuples(_free_by_provider(keeps_usage=tx.database.keeps_usage), {"classes": list(class_ids)})


def free_by_tree(tx: Transaction, class_ids: Sequence[int]) -> list[tuple[int, int, float]]:
    """Return (root, class, how much of it the providers of the tree have left together) for all trees that have it."""
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
def _names(*, listed: bool) -> PreparedStatement:
    columns = select(_RP.id, _RP.name, _RP.uuid, _RP.root_provider_id)
    return PreparedStatement(columns.where(_among(_RP.root_provider_id, listed=listed)))


@lru_cache(maxsize=2)
def _units(*, listed: bool) -> PreparedStatement:
    return PreparedStatement(_UNITS.where(_among(_RP.root_provider_id, listed=listed)))


@lru_cache(maxsize=2)
def _unusual_units(*, listed: bool) -> PreparedStatement:
    is_of_class = _INV.resource_class_id.in_(bindparam("classes", expanding=True))
    is_unusual = or_(_INV.min_unit > 1, _INV.step_size > 1)
    return PreparedStatement(_UNITS.where(_among(_RP.root_provider_id, listed=listed), is_of_class, is_unusual))


@lru_cache(maxsize=2)
def _roots(*, listed: bool) -> PreparedStatement:
    return PreparedStatement(select(_RP.id, _RP.root_provider_id).where(_among(_RP.id, listed=listed)))


@lru_cache(maxsize=2)
def _parents(*, listed: bool) -> PreparedStatement:
    return PreparedStatement(select(_RP.id, _RP.parent_provider_id).where(_among(_RP.id, listed=listed)))


_UNITS = select(_INV.resource_provider_id, _INV.resource_class_id, _INV.min_unit, _INV.max_unit, _INV.step_size).join(
    resource_providers, _RP.id == _INV.resource_provider_id
)

_PLACES = PreparedStatement(
    select(_RP.id, _RP.parent_provider_id, _RP.root_provider_id, _HAS.trait_id)
    .select_from(resource_provider_traits.join(resource_providers, _RP.id == _HAS.resource_provider_id))
    .where(_HAS.trait_id.in_(bindparam("traits", expanding=True)))
)


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
        .where(_INV.resource_class_id.in_(bindparam("classes", expanding=True)))
        .group_by(_RP.root_provider_id, _INV.resource_class_id)
    )


def _summed_up(stock: StockSource) -> Any:
    # Whoever has given away more than there is takes nothing from what others have left.
    return cast(func.sum(case((stock.left > 0, stock.left), else_=0)), Double)

"""What the planner wants to know of provider trees besides who can serve what: names, places of levels, stocks."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, and_, bindparam, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.kept_usage.usage_source import usage_source
from placement.store.search.ranges import is_between
from placement.store.search.summaries import LISTED
from placement.store.tables import inventories, resource_provider_traits, resource_providers

Sums = dict[int, tuple[int, int]]
"""By class id: capacity and use, summed over a tree."""

_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c


def provider_names(tx: Transaction, roots: Collection[int]) -> dict[int, str]:
    """Return the names of all providers of trees."""
    rows = tx.tuples(_columns("names", listed=_is_listed(roots)), _values(roots))
    return {id_: name or uuid for id_, name, uuid, root in rows if root in roots}


def parents_of(tx: Transaction, roots: Collection[int]) -> dict[int, int | None]:
    """Return the parent of every provider of trees."""
    return dict(tx.tuples(_columns("parents", listed=_is_listed(roots)), _values(roots)))


def providers_with(tx: Transaction, trait_ids: Sequence[int], roots: Collection[int]) -> list[tuple[int, int]]:
    """Return (provider, trait) for the providers of trees that have any of these traits."""
    if not trait_ids:
        return []
    return tx.tuples(_traits(listed=_is_listed(roots)), {**_values(roots), "traits": list(trait_ids)})


def tree_sums(tx: Transaction, class_ids: Sequence[int], roots: Collection[int]) -> Mapping[int, Sums]:
    """Return for each tree how much of classes its providers have and use together."""
    if not class_ids:
        return {}
    statement = _stocks(listed=_is_listed(roots), keeps_usage=tx.database.keeps_usage)
    found: dict[int, Sums] = defaultdict(dict)
    for root, class_id, total, reserved, ratio, used in tx.tuples(
        statement, {**_values(roots), "classes": list(class_ids)}
    ):
        capacity, in_use = found[root].get(class_id, (0, 0))
        # As everywhere, what a provider has is a whole number; a DBA's negative one is none.
        found[root][class_id] = (capacity + max(0, int((total - reserved) * ratio)), in_use + int(used))
    return found


def _is_listed(roots: Collection[int]) -> bool:
    return len(roots) <= LISTED


def _values(roots: Collection[int]) -> dict[str, Any]:
    if _is_listed(roots):
        return {"roots": sorted(roots)}
    return {"first": min(roots), "last": max(roots)}


def _of_trees(statement: Select[Any], *, listed: bool) -> Select[Any]:
    if listed:
        return statement.where(_RP.root_provider_id.in_(bindparam("roots", expanding=True)))
    return statement.where(is_between(_RP.root_provider_id, "first", "last"))


@lru_cache(maxsize=4)
def _columns(of: str, *, listed: bool) -> Select[Any]:
    columns = {
        "names": (_RP.id, _RP.name, _RP.uuid, _RP.root_provider_id),
        "parents": (_RP.id, _RP.parent_provider_id),
    }
    return _of_trees(select(*columns[of]), listed=listed)


@lru_cache(maxsize=2)
def _traits(*, listed: bool) -> Select[Any]:
    pairs = select(_HAS.resource_provider_id, _HAS.trait_id).join(
        resource_providers, _RP.id == _HAS.resource_provider_id
    )
    return _of_trees(pairs.where(_HAS.trait_id.in_(bindparam("traits", expanding=True))), listed=listed)


@lru_cache(maxsize=4)
def _stocks(*, listed: bool, keeps_usage: bool) -> Select[Any]:
    usage = usage_source(keeps_usage=keeps_usage)
    same = and_(
        usage.c.resource_provider_id == _INV.resource_provider_id,
        usage.c.resource_class_id == _INV.resource_class_id,
    )
    columns = select(
        _RP.root_provider_id,
        _INV.resource_class_id,
        _INV.total,
        _INV.reserved,
        _INV.allocation_ratio,
        func.coalesce(usage.c.used, 0),
    ).select_from(inventories.join(resource_providers, _RP.id == _INV.resource_provider_id).outerjoin(usage, same))
    return _of_trees(columns.where(_INV.resource_class_id.in_(bindparam("classes", expanding=True))), listed=listed)

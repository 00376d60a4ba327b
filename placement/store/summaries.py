"""Provider summaries: what the providers of some trees have, use and are. Read last, for the answer's trees only."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, and_, bindparam, func, select

from placement.store.tables import inventories, resource_provider_traits, resource_providers
from placement.store.unit_of_work import Transaction
from placement.store.usage_source import usage_source

LISTED_ROOTS = 100
"""Up to so many trees are named one by one; more are read as one range of ids, leaving out what is not wanted."""


@dataclass(slots=True)
class Summary:
    """A provider: ``resources`` has (class, capacity, used), ``traits`` are names in the order of their ids."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None
    resources: list[tuple[str, int, int]] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)


def tree_summaries(tx: Transaction, roots: Collection[int], *, with_traits: bool = True) -> dict[int, Summary]:
    """Return all providers of the trees with these root ids, by provider id, trees and providers by ascending id."""
    if not roots:
        return {}
    listed = len(roots) <= LISTED_ROOTS
    values: dict[str, Any] = {"roots": sorted(roots)} if listed else {"first": min(roots), "last": max(roots)}
    found = {
        id_: Summary(id_, uuid, root, parent)
        for id_, uuid, root, parent in tx.tuples(_providers(listed=listed), values)
        if listed or root in roots
    }
    _add_resources(tx, found, _resources(listed=listed, keeps_usage=tx.database.keeps_usage), values)
    if with_traits:
        _add_traits(tx, found, _traits(listed=listed), values)
    return found


def _add_resources(tx: Transaction, found: dict[int, Summary], statement: Any, values: dict[str, Any]) -> None:
    rows = [row for row in tx.tuples(statement, values) if row[0] in found]
    names = tx.names.classes.names(tx.connection, {row[1] for row in rows})
    for id_, class_id, total, reserved, ratio, used in rows:
        found[id_].resources.append((names[class_id], int((total - reserved) * ratio), int(used)))


def _add_traits(tx: Transaction, found: dict[int, Summary], statement: Any, values: dict[str, Any]) -> None:
    rows = tx.tuples(statement, values)
    names = tx.names.traits.names(tx.connection, {trait for _, trait in rows})
    for id_, trait in rows:
        if id_ in found:
            found[id_].traits.append(names[trait])


_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c


def _of_trees(statement: Select[Any], *, listed: bool) -> Select[Any]:
    if listed:
        return statement.where(_RP.root_provider_id.in_(bindparam("roots", expanding=True)))
    return statement.where(_RP.root_provider_id.between(bindparam("first"), bindparam("last")))


@lru_cache(maxsize=2)
def _providers(*, listed: bool) -> Select[Any]:
    columns = select(_RP.id, _RP.uuid, _RP.root_provider_id, _RP.parent_provider_id)
    return _of_trees(columns, listed=listed).order_by(_RP.root_provider_id, _RP.id)


@lru_cache(maxsize=4)
def _resources(*, listed: bool, keeps_usage: bool) -> Select[Any]:
    usage = usage_source(keeps_usage=keeps_usage)
    columns = select(
        _INV.resource_provider_id,
        _INV.resource_class_id,
        _INV.total,
        _INV.reserved,
        _INV.allocation_ratio,
        func.coalesce(usage.c.used, 0),
    ).select_from(
        inventories.join(resource_providers, _RP.id == _INV.resource_provider_id).outerjoin(
            usage,
            and_(
                usage.c.resource_provider_id == _INV.resource_provider_id,
                usage.c.resource_class_id == _INV.resource_class_id,
            ),
        )
    )
    return _of_trees(columns, listed=listed)


@lru_cache(maxsize=2)
def _traits(*, listed: bool) -> Select[Any]:
    pairs = select(_HAS.resource_provider_id, _HAS.trait_id).join(
        resource_providers, _RP.id == _HAS.resource_provider_id
    )
    return _of_trees(pairs, listed=listed).order_by(_HAS.trait_id)

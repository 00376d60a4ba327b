"""The input of fair shares: the total capacity, and who uses how much of it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from sqlalchemy import BigInteger, Column, ColumnElement, Select, bindparam, case, cast, func, select

from placement.cloud.providers import Ints
from placement.domain.inventory import Inventory
from placement.domain.names import UNTYPED
from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement, chunks
from placement.store.search.cloud_rows import HAS_ROOT
from placement.store.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_providers,
)

_INV = inventories.c
_CLASS = allocations.c.resource_class_id
# MariaDB sums integers to decimals.
_USED = case((allocations.c.used > 0, allocations.c.used), else_=0)
"""What an allocation holds: somebody may have written negative ones."""
_SUM = cast(func.sum(_USED), BigInteger)
_ROOT = func.coalesce(resource_providers.c.root_provider_id, allocations.c.resource_provider_id)
_LOCK_CLASSES = (
    select(resource_classes.c.id)
    .where(resource_classes.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(resource_classes.c.id)
    .with_for_update()
)
# Outer joins: allocations of a consumer without a row or a project count as well.
_HOLDERS = (
    allocations.outerjoin(consumers, allocations.c.consumer_id == consumers.c.uuid)
    .outerjoin(projects, consumers.c.project_id == projects.c.id)
    .outerjoin(consumer_types, consumers.c.consumer_type_id == consumer_types.c.id)
)
_MEMBERS = (
    select(resource_provider_aggregates.c.resource_provider_id)
    .join(placement_aggregates, placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id)
    .where(placement_aggregates.c.uuid == bindparam("aggregate"))
)


OwnerColumn = Literal["project", "consumer_type"]
"""Whether consumers belong to their project or to their consumer type."""

_OWNERS: Mapping[OwnerColumn, Column[str]] = {"project": projects.c.external_id, "consumer_type": consumer_types.c.name}
_OWNER_NAMES = {
    owner: KeyedStatement(select(name.table.c.id, name), name.table.c.id) for owner, name in _OWNERS.items()
}


@dataclass(frozen=True, slots=True)
class UsageScope:
    """Which part of all usage to consider.

    Args:
        owner: what consumers belong to.
        class_ids: the resource classes.
        aggregate: the uuid of the aggregate whose providers count; None for all providers.
        types: the names of the consumer types, ``UNTYPED`` for consumers without one; None for all.
        consumers: the uuids of the consumers; None for all.
    """

    owner: OwnerColumn
    class_ids: Collection[int]
    aggregate: str | None = None
    types: Collection[str] | None = None
    consumers: Collection[str] | None = None


HeldAllocation = tuple[str, int | None, int, int, int, int]
"""An allocation: consumer uuid, owner id, provider, root of its tree, class, amount."""

ConsumerHolding = tuple[str, str | None, int, int]
"""What a consumer holds of a class: its uuid, the name of its owner if it has one, the class, the amount."""


def totals(tx: Transaction, class_ids: Collection[int], aggregate: str | None) -> dict[int, int]:
    """Return the total capacity by class id, of all providers or of those in an aggregate."""
    totals: Counter[int] = Counter()
    shapes = tx.tuples(_totals(part=aggregate is not None), _values(class_ids, aggregate))
    for class_id, total, reserved, ratio, count in shapes:
        # Rounded provider by provider, as for claims.
        totals[class_id] += count * max(0, Inventory(total, reserved, allocation_ratio=ratio).capacity)
    return dict(totals)


def usage_by_owner(tx: Transaction, scope: UsageScope) -> list[tuple[str | None, int, int]]:
    """Return (owner, class id, amount) of all usage; the owner is None for consumers that have none."""
    query = _usage(scope.owner, part=scope.aggregate is not None, typed=scope.types is not None)
    values = _values(scope.class_ids, scope.aggregate)
    if scope.types is not None:
        values["types"] = sorted(scope.types)
    if scope.consumers is None:
        return tx.tuples(query, values)
    query = query.where(allocations.c.consumer_id.in_(bindparam("consumers", expanding=True)))
    portions = chunks(sorted(scope.consumers))
    return [row for uuids in portions for row in tx.tuples(query, {**values, "consumers": uuids})]


def usage_by_tree(tx: Transaction, scope: UsageScope, roots: Collection[int] | None = None) -> Ints:
    """Return a row (root, owner id, class id, amount) for each owner in each of these trees, or in all.

    The owner id of consumers without an owner is 0. The types and consumers of the scope do not matter.
    """
    query = _usage_of_trees(scope.owner, part=scope.aggregate is not None)
    values = _values(scope.class_ids, scope.aggregate)
    if roots is None:
        return _as_columns(tx.tuples(query, values))
    query = query.where(_ROOT.in_(bindparam("roots", expanding=True)))
    return _as_columns([row for ids in chunks(sorted(roots)) for row in tx.tuples(query, {**values, "roots": ids})])


def _as_columns(rows: Sequence[tuple[int, int, int, int]]) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def lock_classes(tx: Transaction, class_ids: Collection[int]) -> None:
    """Lock resource classes until the end of the transaction.

    Writing allocations does not lock classes; only transactions that call this wait for each other.
    """
    tx.tuples(_LOCK_CLASSES, {"ids": sorted(class_ids)})


def holdings(tx: Transaction, scope: UsageScope, *, class_ids: Collection[int]) -> list[ConsumerHolding]:
    """Return what each consumer that holds anything of the classes ``class_ids`` holds of those of the scope."""
    values = {**_values(scope.class_ids, scope.aggregate), "of": sorted(class_ids)}
    return tx.tuples(_holdings(scope.owner, part=scope.aggregate is not None), values)


def held_places(tx: Transaction, class_ids: Collection[int], owner: OwnerColumn) -> list[HeldAllocation]:
    """Return all allocations of the classes ``class_ids``. A cloud has tens of thousands of these rows."""
    return tx.tuples(_held_places(owner), {"of": sorted(class_ids)})


def owner_names(tx: Transaction, owner: OwnerColumn, ids: Collection[int]) -> dict[int, str]:
    """Return the names of projects or consumer types by id."""
    return dict(_OWNER_NAMES[owner].tuples(tx.connection, ids))


def members_of(tx: Transaction, aggregate: str) -> set[int]:
    """Return the providers in an aggregate."""
    return {provider for (provider,) in tx.tuples(_MEMBERS, {"aggregate": aggregate})}


def _values(class_ids: Collection[int], aggregate: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {"classes": sorted(class_ids)}
    return values if aggregate is None else {**values, "aggregate": aggregate}


def _counted(
    query: Select[Any], class_id: ColumnElement[int], provider: ColumnElement[int], *, part: bool
) -> Select[Any]:
    """Restrict a query to the relevant classes, and to the providers of the aggregate if there is one."""
    query = query.where(class_id.in_(bindparam("classes", expanding=True)))
    return query.where(provider.in_(_MEMBERS)) if part else query


@lru_cache(maxsize=2)
def _totals(*, part: bool) -> Select[Any]:
    """Count inventories grouped by their figures: a cloud has few distinct ones."""
    shape = (_INV.resource_class_id, _INV.total, _INV.reserved, _INV.allocation_ratio)
    query = _counted(select(*shape, func.count()), _INV.resource_class_id, _INV.resource_provider_id, part=part)
    return query.group_by(*shape)


@lru_cache(maxsize=8)
def _usage(owner: OwnerColumn, *, part: bool, typed: bool) -> Select[Any]:
    query = select(_OWNERS[owner], _CLASS, _SUM).select_from(_HOLDERS)
    if typed:
        query = query.where(func.coalesce(consumer_types.c.name, UNTYPED).in_(bindparam("types", expanding=True)))
    return _counted(query, _CLASS, allocations.c.resource_provider_id, part=part).group_by(_OWNERS[owner], _CLASS)


@lru_cache(maxsize=4)
def _usage_of_trees(owner: OwnerColumn, *, part: bool) -> Select[Any]:
    owner_id = func.coalesce(consumers.c.project_id if owner == "project" else consumers.c.consumer_type_id, 0)
    # Outer joins: somebody may have left allocations of a consumer or a provider that is gone.
    source = allocations.outerjoin(
        resource_providers, resource_providers.c.id == allocations.c.resource_provider_id
    ).outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
    query = select(_ROOT, owner_id, _CLASS, _SUM).select_from(source)
    return _counted(query, _CLASS, allocations.c.resource_provider_id, part=part).group_by(_ROOT, owner_id, _CLASS)


@lru_cache(maxsize=4)
def _holdings(owner: OwnerColumn, *, part: bool) -> Select[Any]:
    columns = (allocations.c.consumer_id, _OWNERS[owner], _CLASS)
    concerned = select(allocations.c.consumer_id).where(_CLASS.in_(bindparam("of", expanding=True)))
    if part:
        concerned = concerned.where(allocations.c.resource_provider_id.in_(_MEMBERS))
    query = select(*columns, _SUM).select_from(_HOLDERS).where(allocations.c.consumer_id.in_(concerned))
    return _counted(query, _CLASS, allocations.c.resource_provider_id, part=part).group_by(*columns)


# These rows carry only the owner's id; names are looked up once for each owner.
@lru_cache(maxsize=2)
def _held_places(owner: OwnerColumn) -> Select[Any]:
    owner_id = consumers.c.project_id if owner == "project" else consumers.c.consumer_type_id
    place = (allocations.c.resource_provider_id, resource_providers.c.root_provider_id)
    return (
        select(allocations.c.consumer_id, owner_id, *place, _CLASS, _USED)
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
        .where(_CLASS.in_(bindparam("of", expanding=True)), HAS_ROOT)
    )

"""Rows of allocations and their sums, and what changing them takes: supplies to check, generations to increment.

Whoever changes allocations locks consumers by uuid first, then providers by id. Nobody waits for a consumer while
holding a provider, except when inserting a new consumer, which comes last.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, delete, distinct, func, select, update

from placement.domain.inventory import Inventory, Supply
from placement.domain.tree import PlaceLock
from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement, PreparedStatement, chunks, row_insert, row_update
from placement.store.journal.triggers import have_changed, revision_column
from placement.store.names import UsedLocks, lock_columns, lock_values, used_locks
from placement.store.stock import STEP_SIZE, StockSource
from placement.store.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    projects,
    resource_providers,
    users,
)

StockKey = tuple[int, int]
"""The ids of a provider and a resource class; ``StockName`` has their names."""

A = allocations.c
_RP, _C, _INV = resource_providers.c, consumers.c, inventories.c

_MODIFIED = func.coalesce(A.updated_at, A.created_at)
_ROWS = select(A.consumer_id, A.resource_provider_id, A.resource_class_id, A.used, A.id)
_HELD, _HELD_FROM = KeyedStatement(_ROWS, A.consumer_id), KeyedStatement(_ROWS, A.resource_provider_id)
_OF_CONSUMER = PreparedStatement(
    select(
        *(_RP.uuid, _RP.generation, A.resource_class_id, A.used, projects.c.external_id, users.c.external_id),
        *(_C.generation, consumer_types.c.name, _MODIFIED),
    )
    .select_from(
        allocations.join(resource_providers, A.resource_provider_id == _RP.id)
        .join(consumers, A.consumer_id == _C.uuid)
        .join(projects, _C.project_id == projects.c.id)
        .join(users, _C.user_id == users.c.id)
        .outerjoin(consumer_types, _C.consumer_type_id == consumer_types.c.id)
    )
    .where(A.consumer_id == bindparam("consumer"))
)
_OF_PROVIDER = PreparedStatement(
    select(_RP.generation, _C.uuid, _C.generation, A.resource_class_id, A.used, _MODIFIED)
    .select_from(
        # Joined inside, SQLite would read the consumers of all allocations first.
        resource_providers.outerjoin(allocations, A.resource_provider_id == _RP.id).outerjoin(
            consumers, A.consumer_id == _C.uuid
        )
    )
    .where(_RP.uuid == bindparam("provider"))
)
_DELETE, _DELETE_ROWS = (KeyedStatement(delete(allocations), key) for key in (A.consumer_id, A.id))
_CHANGE = row_update(A.id, A.used)
_INSERT = row_insert(allocations, A.consumer_id, A.resource_provider_id, A.resource_class_id, A.used)
_ADVANCE_PROVIDERS = KeyedStatement(
    update(resource_providers).values(generation=_RP.generation + bindparam("steps")), _RP.id
)


@lru_cache(maxsize=8)
def _supply_query(locks: int, *, keeps_usage: bool, dialect: str) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    # Restricting the usage itself keeps the database from summing up providers that nobody asked for.
    is_of_these = stock.usage.c.resource_provider_id.in_(bindparam("providers", expanding=True))
    return PreparedStatement(
        select(
            *(_INV.resource_provider_id, _INV.resource_class_id, stock.used),
            *(_INV.total, _INV.reserved, _INV.min_unit, _INV.max_unit, STEP_SIZE, _INV.allocation_ratio),
            *(revision_column(dialect), *lock_columns(locks)),
        )
        .select_from(stock.with_usage(inventories, is_of_these))
        .where(_INV.resource_provider_id.in_(bindparam("providers", expanding=True))),
        by_key=True,
    )


class HeldKey(NamedTuple):
    """What a consumer holds at most one allocation of."""

    consumer_uuid: str
    provider_id: int
    class_id: int


class HeldRow(NamedTuple):
    """A consumer's allocation of one class from one provider."""

    consumer_uuid: str
    provider_id: int
    class_id: int
    used: int
    id: int

    @property
    def key(self) -> HeldKey:
        """What is held."""
        return HeldKey(*self[:3])


class SuppliesWithLocks(NamedTuple):
    """The supplies of some providers, and the locks in use anywhere."""

    by_stock: dict[StockKey, Supply]
    locks: UsedLocks


class AllocationOfConsumer(NamedTuple):
    """An allocation of a consumer, with everything that the answer shows."""

    provider_uuid: str
    provider_generation: int
    class_id: int
    used: int
    project_id: str
    user_id: str
    consumer_generation: int
    consumer_type: str | None
    modified: datetime | None


class AllocationOfProvider(NamedTuple):
    """An allocation from a provider. Without allocations, or if the consumer is gone, there is no consumer."""

    provider_generation: int
    consumer_uuid: str | None
    consumer_generation: int
    class_id: int
    used: int
    modified: datetime | None


def allocations_of_consumer(tx: Transaction, consumer_uuid: str) -> list[AllocationOfConsumer]:
    """Return a consumer's allocations."""
    return [AllocationOfConsumer(*row) for row in tx.rows(_OF_CONSUMER, {"consumer": consumer_uuid})]


def allocations_of_provider(tx: Transaction, uuid: str) -> list[AllocationOfProvider]:
    """Return the allocations from a provider; no rows mean that it does not exist."""
    return [AllocationOfProvider(*row) for row in tx.rows(_OF_PROVIDER, {"provider": uuid})]


def held_by(tx: Transaction, consumer_uuids: Collection[str]) -> list[HeldRow]:
    """Return the allocations of consumers. They cannot change while the consumers are locked."""
    return [HeldRow(*row) for row in _HELD.tuples(tx.connection, consumer_uuids)]


def held_from(tx: Transaction, provider_ids: Collection[int]) -> list[HeldRow]:
    """Return the allocations from providers. They cannot change while the providers are locked."""
    return [HeldRow(*row) for row in _HELD_FROM.tuples(tx.connection, provider_ids)]


def supplies(tx: Transaction, provider_ids: Collection[int]) -> dict[StockKey, Supply]:
    """Return the inventories of providers with their usage. Lock the providers first."""
    return supplies_with_locks(tx, provider_ids, ()).by_stock


def supplies_with_locks(
    tx: Transaction, provider_ids: Collection[int], locks: Sequence[PlaceLock]
) -> SuppliesWithLocks:
    """Return the same, plus which of some locks are in use, without an extra statement."""
    query = _supply_query(len(locks), keeps_usage=tx.database.keeps_usage, dialect=tx.dialect)
    names = lock_values(locks)
    rows = [row for chunk in chunks(list(provider_ids)) for row in tx.tuples(query, {**names, "providers": chunk})]
    if rows and have_changed(tx, rows[0][9]):  # usage that was read as kept may lack what was written meanwhile
        return supplies_with_locks(tx, provider_ids, locks)
    supplies = {(row[0], row[1]): Supply(Inventory(*row[3:9]), row[2]) for row in rows}
    return SuppliesWithLocks(supplies, used_locks(locks, rows[0][10:]) if rows else {})


def delete_allocations(tx: Transaction, consumer_uuids: Collection[str]) -> None:
    """Delete all allocations of some consumers."""
    _DELETE.change(tx.connection, consumer_uuids)


def replace_allocations(tx: Transaction, held: Sequence[HeldRow], amounts: Mapping[HeldKey, int]) -> None:
    """Turn all that some locked consumers hold into the amounts they want, writing only rows that differ."""
    kept = {row.key: row for row in held if row.key in amounts}
    if gone := [row.id for row in held if kept.get(row.key) is not row]:
        _DELETE_ROWS.change(tx.connection, gone)
    if changed := [{"key": row.id, "value": amounts[key]} for key, row in kept.items() if row.used != amounts[key]]:
        tx.write_rows(_CHANGE, changed)
    names = ("consumer_id", "resource_provider_id", "resource_class_id", "used")
    if new := [dict(zip(names, (*key, used), strict=True)) for key, used in amounts.items() if key not in kept]:
        tx.write_rows(_INSERT, new)


def advance_providers(tx: Transaction, ids: Collection[int], *, steps: int = 1) -> None:
    """Increment the generations of providers. The caller has locked them, so nothing is compared."""
    _ADVANCE_PROVIDERS.change(tx.connection, ids, {"steps": steps})


# MariaDB sums integers to decimals.
_SUM = cast(func.sum(A.used), BigInteger)
_COUNT = func.count(distinct(A.consumer_id))
_HOLDERS = (
    allocations.join(consumers, A.consumer_id == _C.uuid)
    .join(projects, _C.project_id == projects.c.id)
    .outerjoin(consumer_types, _C.consumer_type_id == consumer_types.c.id)
)


_ID_OF_PROVIDER = select(_RP.id).where(_RP.uuid == bindparam("provider")).scalar_subquery()


def _of_provider(stock: StockSource) -> PreparedStatement:
    owner, has = resource_providers.c, stock.inventory.c
    stocked = stock.with_usage(
        resource_providers.outerjoin(stock.inventory, has.resource_provider_id == owner.id),
        # Redundant, but restricts usage that has to be summed to this provider.
        stock.usage.c.resource_provider_id == _ID_OF_PROVIDER,
    )
    return PreparedStatement(
        select(owner.generation, has.resource_class_id, stock.used)
        .select_from(stocked)
        .where(owner.uuid == bindparam("provider"))
        .order_by(has.resource_class_id)
    )


def _of_project(columns: tuple[ColumnElement[Any], ...], *, user: bool) -> PreparedStatement:
    """Return the sums of a project, optionally of one of its users, grouped by all columns but the last."""
    holders = _HOLDERS.join(users, _C.user_id == users.c.id) if user else _HOLDERS
    query = select(*columns).select_from(holders).where(projects.c.external_id == bindparam("project"))
    if user:
        query = query.where(users.c.external_id == bindparam("user"))
    return PreparedStatement(query.group_by(*columns[:-1]))


_USAGE_OF_PROVIDER = {keeps_usage: _of_provider(StockSource(keeps_usage=keeps_usage)) for keeps_usage in (True, False)}
_AMOUNTS = {user: _of_project((consumer_types.c.name, A.resource_class_id, _SUM), user=user) for user in (True, False)}
_CONSUMERS = {user: _of_project((consumer_types.c.name, _COUNT), user=user) for user in (True, False)}


def usage_of_provider(tx: Transaction, uuid: str) -> list[tuple[int, int | None, int]]:
    """Return (provider generation, class id, used amount) for each class that a provider has inventory of.

    There is no row for an unknown provider, and one row without a class for a provider without inventory.
    """
    return tx.tuples(_USAGE_OF_PROVIDER[tx.database.keeps_usage], {"provider": uuid})


def usage_of_project(tx: Transaction, project_id: str, user_id: str | None) -> list[tuple[str | None, int, int]]:
    """Return (consumer type, class id, amount) of everything that a project, or one of its users, holds."""
    return tx.tuples(_AMOUNTS[user_id is not None], _parameters(project_id, user_id))


def consumers_of_project(tx: Transaction, project_id: str, user_id: str | None) -> dict[str | None, int]:
    """Return the number of consumers with allocations by type, for a project or one of its users."""
    return dict(tx.tuples(_CONSUMERS[user_id is not None], _parameters(project_id, user_id)))


def _parameters(project_id: str, user_id: str | None) -> dict[str, str]:
    return {"project": project_id} if user_id is None else {"project": project_id, "user": user_id}

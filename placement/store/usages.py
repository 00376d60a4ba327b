"""Sums over allocations: of a provider, and of the consumers of a project."""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, distinct, func, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.stock import StockSource
from placement.store.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_providers,
    users,
)

# MariaDB sums integers to decimals.
_SUM = cast(func.sum(allocations.c.used), BigInteger)
_COUNT = func.count(distinct(allocations.c.consumer_id))
_HOLDERS = (
    allocations.join(consumers, allocations.c.consumer_id == consumers.c.uuid)
    .join(projects, consumers.c.project_id == projects.c.id)
    .outerjoin(consumer_types, consumers.c.consumer_type_id == consumer_types.c.id)
)


_ID_OF_PROVIDER = (
    select(resource_providers.c.id).where(resource_providers.c.uuid == bindparam("provider")).scalar_subquery()
)


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
    holders = _HOLDERS.join(users, consumers.c.user_id == users.c.id) if user else _HOLDERS
    query = select(*columns).select_from(holders).where(projects.c.external_id == bindparam("project"))
    if user:
        query = query.where(users.c.external_id == bindparam("user"))
    return PreparedStatement(query.group_by(*columns[:-1]))


_OF_PROVIDER = {keeps_usage: _of_provider(StockSource(keeps_usage=keeps_usage)) for keeps_usage in (True, False)}
_AMOUNTS = {
    user: _of_project((consumer_types.c.name, allocations.c.resource_class_id, _SUM), user=user)
    for user in (True, False)
}
_CONSUMERS = {user: _of_project((consumer_types.c.name, _COUNT), user=user) for user in (True, False)}


def usage_of_provider(tx: Transaction, uuid: str) -> list[tuple[int, int | None, int]]:
    """Return (provider generation, class id, used amount) for each class that a provider has inventory of.

    There is no row for an unknown provider, and one row without a class for a provider without inventory.
    """
    return tx.tuples(_OF_PROVIDER[tx.database.keeps_usage], {"provider": uuid})


def usage_of_project(tx: Transaction, project_id: str, user_id: str | None) -> list[tuple[str | None, int, int]]:
    """Return (consumer type, class id, amount) of everything that a project, or one of its users, holds."""
    return tx.tuples(_AMOUNTS[user_id is not None], _parameters(project_id, user_id))


def consumers_of_project(tx: Transaction, project_id: str, user_id: str | None) -> dict[str | None, int]:
    """Return the number of consumers with allocations by type, for a project or one of its users."""
    return dict(tx.tuples(_CONSUMERS[user_id is not None], _parameters(project_id, user_id)))


def _parameters(project_id: str, user_id: str | None) -> dict[str, str]:
    return {"project": project_id} if user_id is None else {"project": project_id, "user": user_id}

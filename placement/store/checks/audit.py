"""Find what may no longer be wanted: consumers whose owner is gone, and providers over capacity."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, func, or_, select

from placement.domain.names import UNTYPED
from placement.store.kept_usage.usage_triggers import triggers_in_place
from placement.store.stock import StockSource
from placement.store.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    utc_now,
)


@dataclass(frozen=True, slots=True)
class Ownerless:
    """A consumer with allocations that its owner does not know.

    Args:
        uuid, consumer_type, project: the consumer's.
        held: provider -> class -> amount.
        names: provider -> its name.
    """

    uuid: str
    consumer_type: str
    project: str
    held: dict[str, dict[str, int]]
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class OverFull:
    """A provider whose usage of a class exceeds its capacity."""

    provider: str
    name: str
    resource_class: str
    capacity: int
    used: int


def plain_uuid(text: str) -> str:
    """Normalise a uuid's spelling."""
    return text.strip().lower().replace("-", "")


def ownerless(
    connection: Connection, known: Collection[str], *, consumer_type: str | None, older_than: timedelta
) -> list[Ownerless]:
    """Return the consumers with allocations that are not among the known ones.

    Args:
        connection: a connection with one snapshot.
        known: the uuids that are still alive, in any spelling.
        consumer_type: only consumers of this type.
        older_than: only consumers created longer ago than this; younger ones may not be listed yet.
    """
    living = {plain_uuid(uuid) for uuid in known}
    query = (
        select(
            consumers.c.uuid,
            func.coalesce(consumer_types.c.name, UNTYPED),
            func.coalesce(projects.c.external_id, ""),
            resource_providers.c.uuid,
            func.coalesce(resource_providers.c.name, ""),
            resource_classes.c.name,
            allocations.c.used,
        )
        .select_from(consumers)
        .join(allocations, allocations.c.consumer_id == consumers.c.uuid)
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
        .outerjoin(projects, projects.c.id == consumers.c.project_id)
        .where(or_(consumers.c.created_at.is_(None), consumers.c.created_at < utc_now() - older_than))
        .order_by(consumers.c.uuid, resource_providers.c.id, resource_classes.c.id)
    )
    if consumer_type is not None:
        query = query.where(consumer_types.c.name == consumer_type)
    ownerless: dict[str, Ownerless] = {}
    for uuid, type_, project, provider, name, class_, used in connection.execute(query):
        if plain_uuid(uuid) not in living:
            consumer = ownerless.setdefault(uuid, Ownerless(uuid, type_, project, {}, {}))
            consumer.names[provider] = name
            consumer.held.setdefault(provider, {})[class_] = used
    return list(ownerless.values())


def over_full(connection: Connection) -> list[OverFull]:
    """Return the providers and classes whose usage exceeds their capacity."""
    stock = StockSource(keeps_usage=triggers_in_place(connection))
    columns, used = stock.inventory.c, stock.usage.c.used
    query = (
        select(
            resource_providers.c.uuid,
            func.coalesce(resource_providers.c.name, ""),
            resource_classes.c.name,
            stock.capacity,
            used,
        )
        .select_from(stock.in_use)
        .join(resource_providers, resource_providers.c.id == columns.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == columns.resource_class_id)
        .where(used > stock.capacity)
        .order_by(resource_providers.c.id, resource_classes.c.id)
    )
    return [OverFull(*row[:3], int(row[3]), int(row[4])) for row in connection.execute(query)]

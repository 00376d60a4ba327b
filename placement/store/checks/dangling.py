"""Find dangling references. Most links in the reference's schema have no foreign key."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, exists, func, or_, select

from placement.store.tables import (
    allocations,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
    utc_now,
)

EXAMPLES = 5
ABANDONED_AFTER = timedelta(hours=1)
"""The minimum age of a consumer without allocations: the reference creates it a moment before them."""


class Hits(NamedTuple):
    """How often a problem occurs, with a few examples."""

    total: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BadRows:
    """Bad rows of a table, selected by ``condition`` and named by ``shown``. Repair deletes them if ``useless``."""

    what: str
    table: Table
    shown: Column[Any]
    condition: Callable[[], ColumnElement[bool]]
    useless: bool = False

    def hits(self, connection: Connection) -> Hits:
        """Count the bad rows and name a few."""
        count = connection.execute(select(func.count()).select_from(self.table).where(self.condition())).scalar_one()
        if not count:
            return Hits(0)
        examples = select(self.shown).where(self.condition()).distinct().order_by(self.shown).limit(EXAMPLES)
        return Hits(count, tuple(f"{self.shown.name} {value}" for value in connection.execute(examples).scalars()))

    def delete(self, connection: Connection) -> None:
        """Delete the bad rows."""
        connection.execute(delete(self.table).where(self.condition()))


def _missing(column: Column[Any], target: Column[Any]) -> Callable[[], ColumnElement[bool]]:
    return lambda: and_(column.is_not(None), ~exists().where(target == column).correlate(column.table))


def _without_inventory() -> ColumnElement[bool]:
    return ~exists().where(
        inventories.c.resource_provider_id == allocations.c.resource_provider_id,
        inventories.c.resource_class_id == allocations.c.resource_class_id,
    )


def _abandoned() -> ColumnElement[bool]:
    age = or_(consumers.c.created_at.is_(None), consumers.c.created_at < utc_now() - ABANDONED_AFTER)
    return and_(age, ~exists().where(allocations.c.consumer_id == consumers.c.uuid))


def _link(what: str, column: Column[Any], target: Column[Any], *, useless: bool = False) -> BadRows:
    return BadRows(what, column.table, column, _missing(column, target), useless)


PROVIDER = resource_providers.c.id
CLASS = resource_classes.c.id

OF_NOTHING = (
    _link("inventories of providers that do not exist", inventories.c.resource_provider_id, PROVIDER, useless=True),
    _link("allocations of providers that do not exist", allocations.c.resource_provider_id, PROVIDER, useless=True),
    _link("inventories of resource classes that do not exist", inventories.c.resource_class_id, CLASS),
    _link("allocations of resource classes that do not exist", allocations.c.resource_class_id, CLASS),
)
DANGLING = (
    *OF_NOTHING,
    _link(
        "traits of providers that do not exist", resource_provider_traits.c.resource_provider_id, PROVIDER, useless=True
    ),
    _link("traits of providers, unknown by now", resource_provider_traits.c.trait_id, traits.c.id, useless=True),
    _link(
        "aggregates of providers that do not exist",
        resource_provider_aggregates.c.resource_provider_id,
        PROVIDER,
        useless=True,
    ),
    _link(
        "aggregates of providers, unknown by now",
        resource_provider_aggregates.c.aggregate_id,
        placement_aggregates.c.id,
        useless=True,
    ),
    BadRows("allocations without an inventory", allocations, allocations.c.resource_provider_id, _without_inventory),
    _link("consumers of projects that do not exist", consumers.c.project_id, projects.c.id),
    _link("consumers of users that do not exist", consumers.c.user_id, users.c.id),
    BadRows("abandoned consumers, without allocations", consumers, consumers.c.uuid, _abandoned, useless=True),
)

"""Find what may no longer be wanted or is wrong: consumers whose owner is gone, providers over capacity, bad rows.

Bad rows are dangling references (most links in the reference's schema have no foreign key), and values that the schema
allows and no server writes. These come from releases before Rocky, or were written by hand; readers pass them over, or
read another value in their place.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, exists, func, or_, select

from placement.domain.names import UNTYPED
from placement.domain.quantities import LARGEST_CAPACITY
from placement.store.kept_usage import triggers_in_place
from placement.store.stock import StockSource
from placement.store.tables import (
    allocations,
    consumer_types,
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

MAX_MINUTES = 1000 * 366 * 24 * 60
"""How old consumers may have to be: a thousand years, because the calendar of Python ends at some point."""

OLDER_THAN_MIN = 60
"""How old they have to be by default."""

EXAMPLES = 5
ABANDONED_AFTER = timedelta(hours=1)
"""The minimum age of a consumer without allocations: the reference creates it a moment before them."""


class Hits(NamedTuple):
    """How often a problem occurs, with a few examples."""

    total: int
    examples: tuple[str, ...] = ()

    @classmethod
    def counted(cls, hits: Sequence[str]) -> "Hits":
        """Count hits, and show the first ones."""
        return cls(len(hits), tuple(hits[:EXAMPLES]))


@dataclass(frozen=True, slots=True)
class BadRows:
    """Bad rows of a table, selected by ``condition`` and named by ``shown``. Repair deletes them if ``useless``."""

    description: str
    table: Table
    shown: Column[Any]
    condition: Callable[[], ColumnElement[bool]]
    useless: bool = False

    def hits(self, connection: Connection) -> Hits:
        """Count the bad rows and name a few, each by the column and its value."""
        total, examples = self.values(connection)
        return Hits(total, tuple(f"{self.shown.name} {value}" for value in examples))

    def values(self, connection: Connection) -> Hits:
        """Count the bad rows and give the values of a few."""
        count = connection.execute(select(func.count()).select_from(self.table).where(self.condition())).scalar_one()
        if not count:
            return Hits(0)
        examples = select(self.shown).where(self.condition()).distinct().order_by(self.shown).limit(EXAMPLES)
        return Hits(count, tuple(str(value) for value in connection.execute(examples).scalars()))

    def deleted(self, connection: Connection) -> bool:
        """Delete the bad rows if they are useless; tell whether they are."""
        if self.useless:
            connection.execute(delete(self.table).where(self.condition()))
        return self.useless


def _missing(column: Column[Any], target: Column[Any]) -> Callable[[], ColumnElement[bool]]:
    return lambda: and_(column.is_not(None), ~exists().where(target == column).correlate(column.table))


def _abandoned(table: Table, user: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a row is used by no other, except those that may be being created right now."""
    created_at = table.c.created_at
    return and_(or_(created_at.is_(None), created_at < utc_now() - ABANDONED_AFTER), ~exists().where(user))


EMPTY_CONSUMERS = BadRows(
    "abandoned consumers, without allocations",
    consumers,
    consumers.c.uuid,
    lambda: _abandoned(consumers, allocations.c.consumer_id == consumers.c.uuid),
    useless=True,
)
EMPTY_AGGREGATES = BadRows(
    "aggregates without providers",
    placement_aggregates,
    placement_aggregates.c.uuid,
    lambda: _abandoned(placement_aggregates, resource_provider_aggregates.c.aggregate_id == placement_aggregates.c.id),
    useless=True,
)


def _link(description: str, column: Column[Any], target: Column[Any], *, useless: bool = False) -> BadRows:
    return BadRows(description, column.table, column, _missing(column, target), useless)


_PROVIDER, _CLASS = resource_providers.c.id, resource_classes.c.id
_HAS, _HELD = inventories.c, allocations.c
_MARKED, _MEMBER = resource_provider_traits.c, resource_provider_aggregates.c

_IS_STOCK_OF_ALLOCATION = and_(
    _HAS.resource_provider_id == _HELD.resource_provider_id, _HAS.resource_class_id == _HELD.resource_class_id
)

OF_NOTHING = (
    _link("inventories of providers that do not exist", _HAS.resource_provider_id, _PROVIDER, useless=True),
    _link("allocations of providers that do not exist", _HELD.resource_provider_id, _PROVIDER, useless=True),
    _link("inventories of resource classes that do not exist", _HAS.resource_class_id, _CLASS),
    _link("allocations of resource classes that do not exist", _HELD.resource_class_id, _CLASS),
)
DANGLING = (
    *OF_NOTHING,
    _link("traits of providers that do not exist", _MARKED.resource_provider_id, _PROVIDER, useless=True),
    _link("traits of providers, unknown by now", _MARKED.trait_id, traits.c.id, useless=True),
    _link("aggregates of providers that do not exist", _MEMBER.resource_provider_id, _PROVIDER, useless=True),
    _link("aggregates of providers, unknown by now", _MEMBER.aggregate_id, placement_aggregates.c.id, useless=True),
    BadRows(
        "allocations without an inventory",
        allocations,
        _HELD.resource_provider_id,
        lambda: ~exists().where(_IS_STOCK_OF_ALLOCATION),
    ),
    _link("consumers of projects that do not exist", consumers.c.project_id, projects.c.id),
    _link("consumers of users that do not exist", consumers.c.user_id, users.c.id),
    EMPTY_CONSUMERS,
)


_CAPACITY = StockSource(keeps_usage=True).capacity


def _is_out_of_bounds() -> ColumnElement[bool]:
    # This way round because NaN is in no range.
    return ~and_(_CAPACITY < LARGEST_CAPACITY, _CAPACITY > -LARGEST_CAPACITY)


ODD_AMOUNTS = (
    BadRows("inventories with a capacity beyond 2^45", inventories, _HAS.resource_provider_id, _is_out_of_bounds),
    BadRows(
        "inventories with a negative total or reserved amount",
        inventories,
        _HAS.resource_provider_id,
        lambda: or_(_HAS.total < 0, _HAS.reserved < 0),
    ),
    BadRows("inventories with a step_size below 1", inventories, _HAS.resource_provider_id, lambda: _HAS.step_size < 1),
    BadRows("allocations of less than 1", allocations, _HELD.consumer_id, lambda: _HELD.used < 1),
)
_ODD = (
    BadRows(
        "providers without a root provider",
        resource_providers,
        resource_providers.c.uuid,
        lambda: resource_providers.c.root_provider_id.is_(None),
    ),
    *OF_NOTHING,
    *ODD_AMOUNTS,
)


def odd_rows(connection: Connection, *, only_small_tables: bool = False) -> Iterator[str]:
    """Yield a line for each kind of odd row; ``only_small_tables`` leaves out allocations, perhaps millions."""
    for kind in _ODD:
        if only_small_tables and kind.table is allocations:
            continue
        total, examples = kind.hits(connection)
        if total:
            yield f"{kind.description.capitalize()}: {total}, for example {', '.join(examples)}"


@dataclass(frozen=True, slots=True)
class Ownerless:
    """A consumer with allocations that its owner does not know, what it holds, and the providers' names."""

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
    connection: Connection, owned: Collection[str], *, consumer_type: str | None, older_than: timedelta
) -> list[Ownerless]:
    """Return the consumers of a type with allocations that are not among the known ones, in any spelling.

    Consumers younger than ``older_than`` are left out: they may not be listed yet.
    """
    living = {plain_uuid(uuid) for uuid in owned}
    query = (
        select(
            *(
                consumers.c.uuid,
                func.coalesce(consumer_types.c.name, UNTYPED),
                func.coalesce(projects.c.external_id, ""),
            ),
            *(resource_providers.c.uuid, func.coalesce(resource_providers.c.name, "")),
            *(resource_classes.c.name, allocations.c.used),
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
            *(resource_providers.c.uuid, func.coalesce(resource_providers.c.name, "")),
            *(resource_classes.c.name, stock.capacity, used),
        )
        .select_from(stock.in_use)
        .join(resource_providers, resource_providers.c.id == columns.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == columns.resource_class_id)
        .where(used > stock.capacity)
        .order_by(resource_providers.c.id, resource_classes.c.id)
    )
    return [OverFull(*row[:3], int(row[3]), int(row[4])) for row in connection.execute(query)]

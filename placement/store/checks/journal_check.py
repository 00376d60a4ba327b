"""Check the journal against the tables: the newest row about each thing must match what is there.

Changes from before the journal last began are skipped: rows about them may be missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, case, func, or_, select

from placement.store.checks.dangling import EXAMPLES, Hits
from placement.store.journal import triggers
from placement.store.journal.watched import (
    AGGREGATE,
    ALLOCATION,
    BEGAN,
    CLASS_NAME,
    CONSUMER,
    DELETED,
    GENERATION,
    INVENTORY,
    PROVIDER,
    TRAIT,
    TRAIT_NAME,
)
from placement.store.tables import (
    allocations,
    consumers,
    inventories,
    placement_journal,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from placement.store.trigger_set import DOUBTED

J = placement_journal.c


@dataclass(frozen=True, slots=True)
class _Told:
    """What the journal records of a table: the columns that identify a row, and those to compare."""

    table: Table
    kinds: tuple[str, ...]
    key: dict[str, str]
    same: dict[str, str]


_SPOT = {"resource_provider_id": "resource_provider_id", "resource_class_id": "resource_class_id"}
_MARKED = {"resource_provider_id": "resource_provider_id"}
_TOLD = (
    _Told(
        allocations, (ALLOCATION,), {"object_id": "id"}, _SPOT | {"consumer_uuid": "consumer_id", "new_amount": "used"}
    ),
    _Told(inventories, (INVENTORY,), {"object_id": "id"}, _SPOT | {"new_amount": "total"}),
    _Told(resource_provider_traits, (TRAIT,), {"object_id": "trait_id"} | _MARKED, {}),
    _Told(resource_provider_aggregates, (AGGREGATE,), {"object_id": "aggregate_id"} | _MARKED, {}),
    _Told(
        resource_providers,
        (PROVIDER, GENERATION),
        {"object_id": "id"},
        {"provider_uuid": "uuid", "root_provider_id": "root_provider_id", "generation": "generation"},
    ),
    _Told(
        consumers,
        (CONSUMER,),
        {"object_id": "id"},
        {"consumer_uuid": "uuid"} | {name: name for name in ("generation", "project_id", "user_id")},
    ),
    _Told(resource_classes, (CLASS_NAME,), {"object_id": "id"}, {}),
    _Told(traits, (TRAIT_NAME,), {"object_id": "id"}, {}),
)


def untrue(connection: Connection) -> Hits:
    """Find things that differ from the journal. Without a journal nothing is wrong."""
    if not triggers.triggers_in_place(connection):
        return Hits(1, (f"the triggers that write it {DOUBTED}",)) if triggers.some_are_there(connection) else Hits(0)
    began = connection.execute(select(func.coalesce(func.max(J.id), 0)).where(J.action == BEGAN)).scalar_one()
    found = [(told, id_) for told in _TOLD for id_ in _wrong(connection, told, began)]
    return Hits(len(found), tuple(f"{told.table.name}, row {id_} of the journal" for told, id_ in found[:EXAMPLES]))


def _wrong(connection: Connection, subject: _Told, began: int) -> Sequence[int]:
    """Return the ids of the newest journal rows that contradict the table."""
    keys = [placement_journal.c[name] for name in subject.key]
    newest = select(func.max(J.id)).where(J.kind.in_(subject.kinds), J.id > began).group_by(*keys)
    link = and_(*(placement_journal.c[name] == subject.table.c[column] for name, column in subject.key.items()))
    is_there = subject.table.c[next(iter(subject.key.values()))].is_not(None)
    differs = or_(
        ~is_there, *(_differ(placement_journal.c[name], subject.table.c[of]) for name, of in subject.same.items())
    )
    query = (
        select(J.id)
        .select_from(placement_journal.outerjoin(subject.table, link))
        .where(J.id.in_(newest), case((J.action == DELETED, is_there), else_=differs))
        .order_by(J.id)
    )
    return connection.execute(query).scalars().all()


def _differ(one: Column[object], other: Column[object]) -> ColumnElement[bool]:
    return one.is_distinct_from(other)

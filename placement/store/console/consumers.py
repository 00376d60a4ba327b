"""Consumers and projects: lists, page by page, and what they hold on which trees; and who bears an identifier."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, ScalarSelect, Select, exists, func, or_, select

from placement.store.connection.database import Transaction
from placement.store.console.stocks import summed
from placement.store.providers import IN_TREES, NAME, ROOT, ROOT_NAME, RP
from placement.store.search.cloud_rows import HAS_ROOT
from placement.store.tables import allocations, consumer_types, consumers, projects, resource_providers, users

UUID_LENGTH = 36

_C = consumers.c

_SOURCE = (
    consumers.join(projects, projects.c.id == _C.project_id)
    .join(users, users.c.id == _C.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _C.consumer_type_id)
)

_COLUMNS = select(
    *(_C.uuid, projects.c.external_id, users.c.external_id, consumer_types.c.name, _C.generation),
    *(func.coalesce(_C.updated_at, _C.created_at), _C.created_at),
).select_from(_SOURCE)

COUNTED_MOST = 100_000
"""Counting stops here."""

A = allocations.c

ALLOCATIONS_IN_TREES = allocations.join(resource_providers, RP.id == A.resource_provider_id)

MAX_SUMMED = 5_000
"""So many consumers of a project are added up, the first by uuid: all would take seconds where it has 100,000."""


class ListedConsumer(NamedTuple):
    """A consumer; ``type`` is None if unknown."""

    uuid: str
    project_id: str
    user_id: str
    type: str | None
    generation: int
    changed_at: datetime | None
    since: datetime | None


class HeldAmount(NamedTuple):
    """What a consumer holds of one class from one provider."""

    provider_uuid: str
    provider_name: str
    root_uuid: str
    root_name: str
    class_name: str
    used: int


def begins_with(text: str) -> ColumnElement[bool]:
    """Return the condition that a consumer's uuid starts with a text; a complete uuid uses the index."""
    text = text.lower()
    return _C.uuid == text if len(text) == UUID_LENGTH else _C.uuid.startswith(text, autoescape=True)


def of_project(text: str, ids: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that the id of a consumer's project starts with a text or is one of some ids."""
    return or_(projects.c.external_id.startswith(text, autoescape=True), projects.c.external_id.in_(ids))


def of_type(name: str | None) -> ColumnElement[bool]:
    """Return the condition that a consumer has this type, or none for None."""
    return consumer_types.c.name.is_(None) if name is None else consumer_types.c.name == name


def listed_consumers(
    tx: Transaction, conditions: Sequence[ColumnElement[bool]], *, first: int, limit: int
) -> list[ListedConsumer]:
    """Return a page of the consumers that meet the conditions, newest first."""
    query = _COLUMNS.where(*conditions).order_by(_C.id.desc()).offset(first).limit(limit)
    return [ListedConsumer(*row) for row in tx.execute(query)]


def consumer_count(tx: Transaction, conditions: Sequence[ColumnElement[bool]]) -> int | None:
    """Return how many consumers meet the conditions; None if there are too many to count."""
    return counted(tx, select(_C.id).select_from(_SOURCE).where(*conditions))


def number_of_consumers(tx: Transaction) -> int:
    """Return how many consumers there are."""
    return int(tx.execute(select(func.count()).select_from(consumers)).scalar_one())


def type_names(tx: Transaction) -> list[str]:
    """Return all consumer types."""
    return [name for (name,) in tx.tuples(select(consumer_types.c.name).order_by(consumer_types.c.name))]


def consumer(tx: Transaction, uuid: str) -> ListedConsumer | None:
    """Return one consumer, or None."""
    rows = [ListedConsumer(*row) for row in tx.execute(_COLUMNS.where(_C.uuid == uuid))]
    return rows[0] if rows else None


def sums_of(tx: Transaction, uuids: Collection[str]) -> dict[str, dict[str, int]]:
    """Return how much consumers hold of each class, by uuid."""
    query = select(A.consumer_id, A.resource_class_id, summed(A.used)).where(A.consumer_id.in_(sorted(uuids)))
    by_class = query.group_by(A.consumer_id, A.resource_class_id).order_by(A.resource_class_id)
    rows = tx.tuples(by_class) if uuids else []
    names = tx.names.classes.names(tx.connection, {row[1] for row in rows})
    sums: dict[str, dict[str, int]] = defaultdict(dict)
    for uuid, class_id, used in rows:
        sums[uuid][names[class_id]] = int(used)
    return sums


def held_by(tx: Transaction, uuid: str, *, first: int, limit: int) -> list[HeldAmount]:
    """Return a page of what a consumer holds, tree by tree."""
    query = (
        select(RP.uuid, NAME, ROOT.c.uuid, ROOT_NAME, A.resource_class_id, A.used)
        .select_from(IN_TREES.join(allocations, A.resource_provider_id == RP.id))
        .where(A.consumer_id == uuid)
        .order_by(ROOT_NAME, ROOT.c.id, NAME, RP.id, A.resource_class_id)
        .offset(first)
        .limit(limit)
    )
    rows = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[4] for row in rows})
    return [HeldAmount(*row)._replace(class_name=names[row[4]]) for row in rows]


def counted(tx: Transaction, rows: Select[Any]) -> int | None:
    """Return how many rows a query finds; None for COUNTED_MOST or more."""
    counted_rows = rows.limit(COUNTED_MOST).subquery("counted_rows")
    count = int(tx.execute(select(func.count()).select_from(counted_rows)).scalar_one())
    return count if count < COUNTED_MOST else None


class HeldByConsumer(NamedTuple):
    """What a consumer holds of one class from one provider; a consumer that holds nothing has no provider."""

    consumer_id: int
    type: str | None
    provider_id: int | None
    class_id: int | None
    used: int | None


def held_by_project(tx: Transaction, project: str, *, limit: int = MAX_SUMMED) -> list[HeldByConsumer]:
    """Return what the first consumers of a project hold."""
    columns = _C.id, _C.uuid, _C.consumer_type_id
    first = select(*columns).where(_C.project_id == _id_of(project)).order_by(_C.uuid).limit(limit).subquery("first")
    # Outer joins keep SQLite from beginning with the providers, which takes minutes.
    source = first.outerjoin(consumer_types, consumer_types.c.id == first.c.consumer_type_id)
    query = select(first.c.id, consumer_types.c.name, A.resource_provider_id, A.resource_class_id, A.used)
    rows = tx.tuples(query.select_from(source.outerjoin(allocations, A.consumer_id == first.c.uuid)))
    return [HeldByConsumer(*row) for row in rows]


def consumers_of_project(tx: Transaction, project: str) -> int | None:
    """Return how many consumers a project has; None if there are too many to count."""
    return counted(tx, select(_C.id).where(_C.project_id == _id_of(project)))


def roots_of_project(tx: Transaction, project: str, *, many: int = MAX_SUMMED) -> set[int]:
    """Return the roots of all trees that a project uses.

    From ``many`` consumers on, each provider is asked for one of them: following all of them takes five times as long.
    """
    of_project = _C.project_id == _id_of(project)
    held = allocations.join(consumers, _C.uuid == A.consumer_id)
    query = select(RP.root_provider_id).distinct()
    if len(tx.tuples(select(_C.id).where(of_project).limit(many))) < many:
        query = query.select_from(held.join(resource_providers, RP.id == A.resource_provider_id)).where(of_project)
    else:
        holder = select(A.id).select_from(held).where(A.resource_provider_id == RP.id, of_project)
        query = query.where(exists(holder.correlate(resource_providers)))
    return {root for (root,) in tx.tuples(query.where(HAS_ROOT))}


def _id_of(project: str) -> ScalarSelect[int]:
    return select(projects.c.id).where(projects.c.external_id == project).scalar_subquery()


def project_names(tx: Transaction, *, limit: int) -> list[str]:
    """Return the ids of some projects, newest first."""
    query = select(projects.c.external_id).order_by(projects.c.id.desc()).limit(limit)
    return [name for (name,) in tx.tuples(query)]


class Bearers(NamedTuple):
    """Those with an identifier: a provider's uuid, a consumer's uuid and a project's id, None where there is none."""

    provider: str | None
    consumer: str | None
    project: str | None


def bearers(tx: Transaction, identifier: str) -> Bearers:
    """Return everything that has an identifier; providers can also be found by name."""
    uuid = identifier.lower()
    query = select(
        select(RP.uuid).where(or_(RP.uuid == uuid, RP.name == identifier)).order_by(RP.id).limit(1).scalar_subquery(),
        select(_C.uuid).where(_C.uuid == uuid).scalar_subquery(),
        select(projects.c.external_id).where(projects.c.external_id == identifier).scalar_subquery(),
    )
    return Bearers(*tx.tuples(query)[0])

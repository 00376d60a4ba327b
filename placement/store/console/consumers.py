"""Lists of consumers, page by page, single consumers and projects, and what they hold on which trees."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, FromClause, Select, distinct, exists, func, or_, select

from placement.store.connection.unit_of_work import Transaction
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
    _C.uuid,
    projects.c.external_id,
    users.c.external_id,
    consumer_types.c.name,
    _C.generation,
    func.coalesce(_C.updated_at, _C.created_at),
    _C.created_at,
).select_from(_SOURCE)

COUNTED_MOST = 100_000
"""Counting stops here."""

Key = TypeVar("Key")

A = allocations.c

OF_PROJECT = consumers.join(projects, projects.c.id == consumers.c.project_id)

HELD = OF_PROJECT.join(allocations, A.consumer_id == consumers.c.uuid)

HELD_IN_TREES = HELD.join(resource_providers, RP.id == A.resource_provider_id)

ALLOCATIONS_IN_TREES = allocations.join(resource_providers, RP.id == A.resource_provider_id)


MANY = 10_000
"""From this many consumers on, look for one on each provider rather than follow each consumer."""


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
    tx: Transaction, conditions: Sequence[ColumnElement[bool]], *, first: int, most: int
) -> list[ListedConsumer]:
    """Return a page of the consumers that meet the conditions, newest first."""
    query = _COLUMNS.where(*conditions).order_by(_C.id.desc()).offset(first).limit(most)
    return [ListedConsumer(*row) for row in tx.execute(query)]


def consumer_count(tx: Transaction, conditions: Sequence[ColumnElement[bool]]) -> int | None:
    """Return how many consumers meet the conditions; None if there are too many to count."""
    return counted(tx, select(_C.id).select_from(_SOURCE).where(*conditions))


def type_names(tx: Transaction) -> list[str]:
    """Return all consumer types."""
    return [name for (name,) in tx.tuples(select(consumer_types.c.name).order_by(consumer_types.c.name))]


def consumer(tx: Transaction, uuid: str) -> ListedConsumer | None:
    """Return one consumer, or None."""
    rows = [ListedConsumer(*row) for row in tx.execute(_COLUMNS.where(_C.uuid == uuid))]
    return rows[0] if rows else None


def sums_of(tx: Transaction, uuids: Collection[str]) -> dict[str, dict[str, int]]:
    """Return how much consumers hold of each class, by uuid."""
    return sums_held(tx, allocations, A.consumer_id, where=[A.consumer_id.in_(sorted(uuids))]) if uuids else {}


def held_by(tx: Transaction, uuid: str, *, first: int, most: int) -> list[HeldAmount]:
    """Return a page of what a consumer holds, tree by tree."""
    query = (
        select(RP.uuid, NAME, ROOT.c.uuid, ROOT_NAME, A.resource_class_id, A.used)
        .select_from(IN_TREES.join(allocations, A.resource_provider_id == RP.id))
        .where(A.consumer_id == uuid)
        .order_by(ROOT_NAME, ROOT.c.id, NAME, RP.id, A.resource_class_id)
        .offset(first)
        .limit(most)
    )
    rows = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[4] for row in rows})
    return [HeldAmount(*row)._replace(class_name=names[row[4]]) for row in rows]


def counted(tx: Transaction, rows: Select[Any]) -> int | None:
    """Return how many rows a query finds; None for COUNTED_MOST or more."""
    found = rows.limit(COUNTED_MOST).subquery("found")
    count = int(tx.execute(select(func.count()).select_from(found)).scalar_one())
    return count if count < COUNTED_MOST else None


def is_project(project: str) -> ColumnElement[bool]:
    """Return the condition that a row belongs to a project."""
    return projects.c.external_id == project


def sums_held(
    tx: Transaction, source: FromClause, key: ColumnElement[Key], *, where: Sequence[ColumnElement[bool]]
) -> dict[Key, dict[str, int]]:
    """Return how much of each class is held, by the value of a column, over rows that meet the conditions."""
    query = (
        select(key, A.resource_class_id, summed(A.used))
        .select_from(source)
        .where(*where)
        .group_by(key, A.resource_class_id)
        .order_by(A.resource_class_id)
    )
    rows: Sequence[Any] = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[1] for row in rows})
    sums: dict[Key, dict[str, int]] = defaultdict(dict)
    for value, class_id, used in rows:
        sums[value][names[class_id]] = int(used)
    return sums


class ProjectHost(NamedTuple):
    """A tree that a project uses: the number of its consumers there, and the amounts by class."""

    uuid: str
    name: str
    consumers: int
    held: Mapping[str, int]


def consumers_by_type(tx: Transaction, project: str) -> dict[str | None, int]:
    """Return how many consumers of each type a project has; None stands for those without one."""
    query = (
        select(consumer_types.c.name, func.count())
        .select_from(OF_PROJECT.outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id))
        .where(is_project(project))
        .group_by(consumer_types.c.name)
        .order_by(consumer_types.c.name)
    )
    return dict(tx.tuples(query))


def held_by_project(tx: Transaction, project: str) -> dict[str, int]:
    """Return how much a project holds of each class."""
    return sums_held(tx, HELD, projects.c.external_id, where=[is_project(project)]).get(project, {})


def hosts_of_project(tx: Transaction, project: str, *, first: int, most: int, many: int = MANY) -> list[ProjectHost]:
    """Return a page of the trees that a project uses: those with most of its consumers first, of ``many`` by id."""
    number = func.count(distinct(A.consumer_id)).label("number")
    root = RP.root_provider_id
    if _has_many(tx, project, many):
        query = select(root).where(_holds_of(project), HAS_ROOT).distinct().order_by(root)
    else:
        of_project = select(root).select_from(HELD_IN_TREES).where(is_project(project), HAS_ROOT)
        query = of_project.group_by(root).order_by(number.desc(), root)
    ids = [id_ for (id_,) in tx.tuples(query.offset(first).limit(most))]
    # The other way round, databases follow all consumers of the project.
    wanted = select(projects.c.id).where(is_project(project)).scalar_subquery()
    owned = exists().where(consumers.c.uuid == A.consumer_id, consumers.c.project_id == wanted).correlate(allocations)
    conditions = [root.in_(ids), owned]
    counts = dict(tx.tuples(select(root, number).select_from(ALLOCATIONS_IN_TREES).where(*conditions).group_by(root)))
    names = {id_: (uuid, name) for id_, uuid, name in tx.tuples(select(RP.id, RP.uuid, NAME).where(RP.id.in_(ids)))}
    held = sums_held(tx, ALLOCATIONS_IN_TREES, root, where=conditions) if ids else {}
    return [ProjectHost(*names[id_], counts[id_], held[id_]) for id_ in ids]


def _has_many(tx: Transaction, project: str, many: int) -> bool:
    """Tell whether a project has so many consumers that it is faster to ask each provider than to follow them."""
    number = counted(tx, select(consumers.c.id).select_from(OF_PROJECT).where(is_project(project)))
    return number is None or number >= many


def roots_of_project(tx: Transaction, project: str, *, many: int = MANY) -> set[int]:
    """Return the roots of all trees that a project uses.

    From ``many`` consumers on it is faster to ask each provider for one of them than to follow all: five times for a
    project that has half of the consumers on 10,000 hosts.
    """
    if _has_many(tx, project, many):
        query = select(RP.root_provider_id).where(_holds_of(project), HAS_ROOT).distinct()
    else:
        query = select(RP.root_provider_id).select_from(HELD_IN_TREES).where(is_project(project), HAS_ROOT).distinct()
    return {root for (root,) in tx.tuples(query)}


def _holds_of(project: str) -> ColumnElement[bool]:
    """Return the condition that a provider serves any consumer of a project."""
    wanted = select(projects.c.id).where(is_project(project)).scalar_subquery()
    held = allocations.join(consumers, consumers.c.uuid == A.consumer_id)
    served = select(A.id).select_from(held).where(A.resource_provider_id == RP.id, consumers.c.project_id == wanted)
    return exists(served.correlate(resource_providers))

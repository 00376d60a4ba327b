"""What a project holds: in all, by the type of its consumers, and on which trees."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import ColumnElement, distinct, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.console.stocks import summed
from placement.store.providers import RP
from placement.store.tables import allocations, consumer_types, consumers, projects, resource_providers

_A = allocations.c
_OF_PROJECT = consumers.join(projects, projects.c.id == consumers.c.project_id)
_HELD = _OF_PROJECT.join(allocations, _A.consumer_id == consumers.c.uuid)
_PLACED = _HELD.join(resource_providers, RP.id == _A.resource_provider_id)


class ProjectHost(NamedTuple):
    """A tree of which a project holds something: by how many consumers, and how much of each class."""

    uuid: str
    name: str
    consumers: int
    held: Mapping[str, int]


def is_project(project: str) -> ColumnElement[bool]:
    """Return the condition that a row is about a project."""
    return projects.c.external_id == project


def consumers_by_type(tx: Transaction, project: str) -> dict[str | None, int]:
    """Return how many consumers of each type a project has; None are those without one."""
    query = (
        select(consumer_types.c.name, func.count())
        .select_from(_OF_PROJECT.outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id))
        .where(is_project(project))
        .group_by(consumer_types.c.name)
        .order_by(consumer_types.c.name)
    )
    return dict(tx.tuples(query))


def held_by_project(tx: Transaction, project: str) -> dict[str, int]:
    """Return how much a project holds of each class."""
    query = (
        select(_A.resource_class_id, summed(_A.used))
        .select_from(_HELD)
        .where(is_project(project))
        .group_by(_A.resource_class_id)
        .order_by(_A.resource_class_id)
    )
    rows = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[0] for row in rows})
    return {names[class_id]: int(used) for class_id, used in rows}


def hosts_of_project(tx: Transaction, project: str, *, first: int, most: int) -> list[ProjectHost]:
    """Return some of the trees that a project holds something of, those with most of its consumers first."""
    number = func.count(distinct(_A.consumer_id)).label("number")
    each = (
        select(RP.root_provider_id.label("root_id"), number)
        .select_from(_PLACED)
        .where(is_project(project))
        .group_by(RP.root_provider_id)
        .order_by(number.desc(), RP.root_provider_id)
        .offset(first)
        .limit(most)
        .subquery("each")
    )
    query = (
        select(RP.id, RP.uuid, func.coalesce(RP.name, RP.uuid), each.c.number)
        .select_from(each.join(resource_providers, RP.id == each.c.root_id))
        .order_by(each.c.number.desc(), RP.id)
    )
    rows = tx.tuples(query)
    held = _held_of_trees(tx, project, [row[0] for row in rows])
    return [ProjectHost(uuid, name, count, held[id_]) for id_, uuid, name, count in rows]


def _held_of_trees(tx: Transaction, project: str, root_ids: Collection[int]) -> Mapping[int, Mapping[str, int]]:
    found: dict[int, dict[str, int]] = defaultdict(dict)
    if not root_ids:
        return found
    query = (
        select(RP.root_provider_id, _A.resource_class_id, summed(_A.used))
        .select_from(_PLACED)
        .where(is_project(project), RP.root_provider_id.in_(sorted(root_ids)))
        .group_by(RP.root_provider_id, _A.resource_class_id)
        .order_by(_A.resource_class_id)
    )
    rows = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[1] for row in rows})
    for root_id, class_id, used in rows:
        found[root_id][names[class_id]] = int(used)
    return found

"""What a project holds: in total, by consumer type, and on which trees."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import ColumnElement, distinct, exists, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.console.consumers import HELD, HELD_IN_TREES, OF_PROJECT, A, counted, is_project, sums_held
from placement.store.providers import RP
from placement.store.search.ranges import HAS_ROOT
from placement.store.tables import allocations, consumer_types, consumers, projects, resource_providers

MANY = 10_000
"""From this many consumers on, look for one on each provider rather than follow each consumer."""


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


def hosts_of_project(tx: Transaction, project: str, *, first: int, most: int) -> list[ProjectHost]:
    """Return a page of the trees that a project uses, those with most of its consumers first."""
    number = func.count(distinct(A.consumer_id)).label("number")
    each = (
        select(RP.root_provider_id.label("root_id"), number)
        .select_from(HELD_IN_TREES)
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
    of_these = [is_project(project), RP.root_provider_id.in_(sorted([row[0] for row in rows]))]
    held = sums_held(tx, HELD_IN_TREES, RP.root_provider_id, where=of_these) if rows else {}
    return [ProjectHost(uuid, name, count, held[id_]) for id_, uuid, name, count in rows]


def roots_of_project(tx: Transaction, project: str, *, many: int = MANY) -> set[int]:
    """Return the roots of all trees that a project uses.

    From ``many`` consumers on it is faster to ask each provider for one of them than to follow all: five times for a
    project that has half of the consumers on 10,000 hosts.
    """
    number = counted(tx, select(consumers.c.id).select_from(OF_PROJECT).where(is_project(project)))
    if number is not None and number < many:
        query = select(RP.root_provider_id).select_from(HELD_IN_TREES).where(is_project(project), HAS_ROOT).distinct()
    else:
        query = select(RP.root_provider_id).where(_holds_of(project), HAS_ROOT).distinct()
    return {root for (root,) in tx.tuples(query)}


def _holds_of(project: str) -> ColumnElement[bool]:
    """Return the condition that a provider serves any consumer of a project."""
    wanted = select(projects.c.id).where(is_project(project)).scalar_subquery()
    held = allocations.join(consumers, consumers.c.uuid == A.consumer_id)
    served = select(A.id).select_from(held).where(A.resource_provider_id == RP.id, consumers.c.project_id == wanted)
    return exists(served.correlate(resource_providers))

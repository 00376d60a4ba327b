"""What consumers hold: joins from projects to the trees they use, and sums by any column."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, FromClause, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.console.stocks import summed
from placement.store.providers import RP
from placement.store.tables import allocations, consumers, projects, resource_providers

Key = TypeVar("Key")

A = allocations.c

OF_PROJECT = consumers.join(projects, projects.c.id == consumers.c.project_id)
HELD = OF_PROJECT.join(allocations, A.consumer_id == consumers.c.uuid)
HELD_IN_TREES = HELD.join(resource_providers, RP.id == A.resource_provider_id)
IN_TREES = allocations.join(resource_providers, RP.id == A.resource_provider_id)


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
    found: dict[Key, dict[str, int]] = defaultdict(dict)
    for value, class_id, used in rows:
        found[value][names[class_id]] = int(used)
    return found

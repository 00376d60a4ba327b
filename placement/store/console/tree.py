"""What it takes to draw a tree, besides what each provider has (``store.bulk_read``)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import os_traits
from sqlalchemy import ColumnElement, Join, Select, and_, distinct, func, select

from placement.allocators import natural_key
from placement.store.bulk_read import BulkRead, bulk_read
from placement.store.connection.database import Transaction
from placement.store.console.consumers import ALLOCATIONS_IN_TREES, A
from placement.store.providers import NAME, RP
from placement.store.tables import (
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    users,
)

SHARES: str = os_traits.MISC_SHARES_VIA_AGGREGATE

_HAS = resource_provider_traits.c
_MEMBER = resource_provider_aggregates.alias("member")
_NEIGHBOUR = resource_provider_aggregates.alias("neighbour")


class Sharer(NamedTuple):
    """A sharing provider of another tree, and the aggregate that it shares by."""

    uuid: str
    name: str
    aggregate_uuid: str


class ServedTree(NamedTuple):
    """Another tree that a provider shares with."""

    uuid: str
    name: str


class PlacedAmount(NamedTuple):
    """What a consumer holds of one class from one provider."""

    consumer_uuid: str
    project_id: str
    user_id: str
    consumer_type: str | None
    provider_id: int
    class_name: str
    used: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class TreePart:
    """A whole tree, or some of its providers, by id."""

    root_id: int
    providers: Collection[int] | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """The conditions on rows of resource_providers."""
        whole = [RP.root_provider_id == self.root_id]
        return whole if self.providers is None else [*whole, RP.id.in_(sorted(self.providers))]


def parents_by_name(tx: Transaction, root_id: int) -> dict[int, int | None]:
    """Return the parent of each provider of a tree, in the natural order of the providers' names."""
    rows = tx.tuples(select(RP.id, RP.parent_provider_id, RP.name).where(RP.root_provider_id == root_id))
    return {id_: parent for id_, parent, _name in sorted(rows, key=lambda row: (natural_key(row[2] or ""), row[0]))}


def details(tx: Transaction, provider_ids: Collection[int]) -> BulkRead:
    """Return everything that the providers have."""
    return bulk_read(tx, [RP.id.in_(sorted(provider_ids))])


def consumer_counts(tx: Transaction, provider_ids: Collection[int]) -> dict[int, int]:
    """Return how many consumers use each provider, by id."""
    query = (
        select(A.resource_provider_id, func.count(distinct(A.consumer_id)))
        .where(A.resource_provider_id.in_(sorted(provider_ids)))
        .group_by(A.resource_provider_id)
    )
    return dict(tx.tuples(query))


def placed_amounts(tx: Transaction, part: TreePart, *, first: int = 0, limit: int) -> tuple[list[PlacedAmount], bool]:
    """Return what a page of the consumers of a part of a tree hold there, and whether more of them follow."""
    page = (
        select(A.consumer_id)
        .select_from(ALLOCATIONS_IN_TREES)
        .where(*part.conditions)
        .distinct()
        .order_by(A.consumer_id)
        .offset(first)
        .limit(limit + 1)
        .subquery("page")
    )
    query = (
        select(
            *(A.consumer_id, projects.c.external_id, users.c.external_id, consumer_types.c.name),
            *(A.resource_provider_id, A.resource_class_id, A.used, A.created_at),
        )
        .select_from(
            ALLOCATIONS_IN_TREES.join(page, page.c.consumer_id == A.consumer_id)
            .join(consumers, consumers.c.uuid == A.consumer_id)
            .join(projects, projects.c.id == consumers.c.project_id)
            .join(users, users.c.id == consumers.c.user_id)
            .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
        )
        .where(*part.conditions)
        .order_by(A.consumer_id, A.resource_class_id)
    )
    rows = [PlacedAmount(*row) for row in tx.execute(query)]  # with times as such
    names = tx.names.classes.names(tx.connection, {int(row.class_name) for row in rows})
    listed = set(list(dict.fromkeys([row.consumer_uuid for row in rows]))[:limit])
    amounts = [row._replace(class_name=names[int(row.class_name)]) for row in rows if row.consumer_uuid in listed]
    return amounts, len(amounts) < len(rows)


def sharers(tx: Transaction, provider_ids: Collection[int], *, root_id: int, limit: int) -> list[Sharer]:
    """Return the providers of other trees that share with a tree through an aggregate of some of its providers."""
    trait = tx.names.traits.ids(tx.connection, [SHARES])[SHARES]
    query = (
        select(RP.uuid, NAME, placement_aggregates.c.uuid)
        .select_from(_relatives())
        .join(resource_provider_traits, and_(_HAS.resource_provider_id == RP.id, _HAS.trait_id == trait))
        .join(placement_aggregates, placement_aggregates.c.id == _MEMBER.c.aggregate_id)
        .where(_MEMBER.c.resource_provider_id.in_(sorted(provider_ids)), RP.root_provider_id != root_id)
        .distinct()
        .order_by(NAME, placement_aggregates.c.uuid)
        .limit(limit)
    )
    return [Sharer(*row) for row in tx.tuples(query)]


def served(tx: Transaction, provider_ids: Collection[int], *, root_id: int, limit: int) -> tuple[list[ServedTree], int]:
    """Return some of the other trees that providers share with, by name, and how many there are."""
    if not provider_ids:
        return [], 0
    roots = (
        select(RP.root_provider_id.label("id"))
        .select_from(_relatives())
        .where(_MEMBER.c.resource_provider_id.in_(sorted(provider_ids)), RP.root_provider_id != root_id)
        .distinct()
        .subquery("roots")
    )
    query: Select[tuple[str, str, int]] = (
        select(RP.uuid, NAME, func.count().over())
        .select_from(roots.join(resource_providers, RP.id == roots.c.id))
        .order_by(RP.name, RP.id)
        .limit(limit)
    )
    rows = tx.tuples(query)
    return [ServedTree(uuid, name) for uuid, name, _ in rows], rows[0][2] if rows else 0


def _relatives() -> Join:
    """Return the join from members of aggregates to the other members."""
    return _MEMBER.join(_NEIGHBOUR, _NEIGHBOUR.c.aggregate_id == _MEMBER.c.aggregate_id).join(
        resource_providers, RP.id == _NEIGHBOUR.c.resource_provider_id
    )

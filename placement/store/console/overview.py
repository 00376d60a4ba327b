"""The whole cloud in a few statements: how much there is of each class, and what is called what."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, or_, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.console.stocks import INV, ClassTotals, amounts
from placement.store.providers import CHANGED_AT, RP
from placement.store.search.cloud_rows import HAS_ROOT
from placement.store.tables import (
    consumers,
    inventories,
    projects,
    resource_classes,
    resource_provider_traits,
    resource_providers,
    traits,
)

MAX_NAMES = 1000


class CloudCounts(NamedTuple):
    """The numbers of trees, providers and consumers."""

    trees: int
    providers: int
    consumers: int


class ClassStock(NamedTuple):
    """The cloud's stock of a resource class, with its id, and how many providers have it."""

    class_id: int
    stock: ClassTotals
    providers: int


def counts(tx: Transaction) -> CloudCounts:
    """Return the numbers of trees, providers and consumers."""
    query = select(
        select(func.count()).select_from(resource_providers).where(RP.parent_provider_id.is_(None)).scalar_subquery(),
        select(func.count()).select_from(resource_providers).scalar_subquery(),
        select(func.count()).select_from(consumers).scalar_subquery(),
    )
    return CloudCounts(*tx.tuples(query)[0])


def class_stocks(tx: Transaction) -> list[ClassStock]:
    """Return the stock of each class that any provider has."""
    have = amounts(tx)
    query = (
        select(INV.resource_class_id, func.count(), *have.sums)
        .select_from(have.source)
        .group_by(INV.resource_class_id)
        .order_by(INV.resource_class_id)
    )
    rows = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[0] for row in rows})
    return [
        ClassStock(class_id, ClassTotals(names[class_id], *map(int, sums)), count) for class_id, count, *sums in rows
    ]


def unchanged_trees(tx: Transaction, since: datetime) -> int:
    """Return how many trees have no provider that changed since a moment (naive UTC)."""
    changed = select(RP.root_provider_id).where(since <= CHANGED_AT, HAS_ROOT)
    roots = RP.id == RP.root_provider_id
    query = select(func.count()).select_from(resource_providers).where(roots, RP.id.not_in(changed))
    return int(tx.execute(query).scalar_one())


class NamesInUse(NamedTuple):
    """The names, sorted; at most MAX_NAMES of each kind."""

    classes: list[str]
    traits: list[str]


def names_in_use(tx: Transaction) -> NamesInUse:
    """Return the names that any provider has."""
    of_classes = select(inventories.c.resource_class_id)
    of_traits = select(resource_provider_traits.c.trait_id)
    classes = select(resource_classes.c.name).where(resource_classes.c.id.in_(of_classes))
    named = select(traits.c.name).where(traits.c.id.in_(of_traits))
    return NamesInUse(
        [name for (name,) in tx.tuples(classes.order_by(resource_classes.c.name).limit(MAX_NAMES))],
        [name for (name,) in tx.tuples(named.order_by(traits.c.name).limit(MAX_NAMES))],
    )


class Bearers(NamedTuple):
    """Those with an identifier: a provider's uuid, a consumer's uuid and a project's id, None where there is none."""

    provider: str | None
    consumer: str | None
    project: str | None


def known_as(tx: Transaction, identifier: str) -> Bearers:
    """Return everything that has an identifier; providers can also be found by name."""
    uuid = identifier.lower()
    query = select(
        select(RP.uuid).where(or_(RP.uuid == uuid, RP.name == identifier)).order_by(RP.id).limit(1).scalar_subquery(),
        select(consumers.c.uuid).where(consumers.c.uuid == uuid).scalar_subquery(),
        select(projects.c.external_id).where(projects.c.external_id == identifier).scalar_subquery(),
    )
    return Bearers(*tx.tuples(query)[0])

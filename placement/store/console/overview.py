"""The whole cloud in a few statements: totals by class, how devices are spread over trees, the latest changes."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import case, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.console.stocks import INV, ClassTotals, amounts, per_tree_and_class, summed
from placement.store.providers import RP
from placement.store.tables import consumers, resource_providers

AT_LEAST = (1, 2, 4, 8)
"""The sizes of requests, in devices, to look at."""


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


class Scattering(NamedTuple):
    """How the free units of a class are spread over the trees.

    ``trees`` are the numbers of trees with at least 1, 2, 4 and 8 free, ``most`` is the maximum of any tree.
    """

    class_name: str
    free: int
    most: int
    trees: tuple[int, ...]


class LatestChange(NamedTuple):
    """A provider, the root of its tree, and when it last changed (naive UTC)."""

    uuid: str
    name: str
    generation: int
    changed_at: datetime | None
    root_uuid: str
    root_name: str


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


def scattering(tx: Transaction, *, but: Collection[str]) -> list[Scattering]:
    """Return how free units are spread over the trees, for all classes but some."""
    each = per_tree_and_class(tx).subquery("each_class")
    free = each.c.capacity - each.c.used
    size = case(*((free >= bound, bound) for bound in reversed(AT_LEAST)), else_=0)
    left_out = tx.names.classes.ids(tx.connection, but)
    query = (
        select(each.c.class_id, size, func.count(), summed(case((free > 0, free), else_=0)), func.max(free))
        .where(each.c.class_id.not_in(sorted(left_out.values())))
        .group_by(each.c.class_id, size)
        .order_by(each.c.class_id)
    )
    by_class: dict[int, list[Any]] = defaultdict(list)
    for row in tx.tuples(query):
        by_class[row[0]].append(row)
    names = tx.names.classes.names(tx.connection, by_class)
    return [_scattering(names[class_id], rows) for class_id, rows in by_class.items()]


def _scattering(class_name: str, rows: list[Any]) -> Scattering:
    return Scattering(
        class_name,
        free=sum(int(free) for _, _, _, free, _ in rows),
        most=max(0, *(int(most) for *_, most in rows)),
        trees=tuple(sum(count for _, size, count, *_ in rows if size >= bound) for bound in AT_LEAST),
    )


def latest_changes(tx: Transaction, *, limit: int) -> list[LatestChange]:
    """Return the providers that changed last, newest change first."""
    root = resource_providers.alias("root")
    changed_at = func.coalesce(RP.updated_at, RP.created_at)
    root_name = func.coalesce(root.c.name, root.c.uuid)
    query = (
        select(RP.uuid, func.coalesce(RP.name, RP.uuid), RP.generation, changed_at, root.c.uuid, root_name)
        .select_from(resource_providers.join(root, RP.root_provider_id == root.c.id))
        # Databases disagree on whether nulls come first or last.
        .where(changed_at.is_not(None))
        .order_by(changed_at.desc(), RP.id.desc())
        .limit(limit)
    )
    return [LatestChange(*row) for row in tx.execute(query)]

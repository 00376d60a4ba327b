"""The stocks of providers and trees by resource class, summed in SQL: how full trees are, of which kind, and the map.

Trees with the same resource classes are of one kind. Each function of the map sends one statement, whatever the size of
the cloud, or two if a name has to be looked up first.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import os_traits
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Float,
    FromClause,
    Select,
    Subquery,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    union,
)

from placement.allocators.natural_order import natural_key
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.order import J
from placement.store.journal.watched import ALLOCATION
from placement.store.providers import NAME, RP
from placement.store.search.cloud_rows import HAS_ROOT
from placement.store.stock import StockSource, stock_by_tree
from placement.store.tables import (
    drained_inventories,
    inventories,
    projects,
    resource_provider_traits,
    resource_providers,
)

INV = inventories.c
_DRAINED = drained_inventories.c

DISABLED: str = os_traits.COMPUTE_STATUS_DISABLED
"""The trait that nova puts on the root of a host whose compute service is disabled."""

_HAS = resource_provider_traits.c


class ClassTotals(NamedTuple):
    """The totals of a resource class, in its units; ``capacity`` is what may be allocated."""

    class_name: str
    total: int
    reserved: int
    capacity: int
    used: int

    @property
    def set_aside(self) -> float:
        """The reserved amount in terms of capacity: times the allocation ratio, as if all had the average one.

        A negative amount adds to the capacity instead.
        """
        given, reserved = self.total - self.reserved, max(0, self.reserved)
        return reserved * self.capacity / given if given > 0 else reserved

    @property
    def free(self) -> int:
        """What is left, never negative."""
        return max(0, self.capacity - self.used)


class StockSums(NamedTuple):
    """The columns to sum, and their source: inventories with their providers and usage."""

    source: FromClause
    capacity: ColumnElement[int]
    used: ColumnElement[int]

    @property
    def sums(self) -> tuple[ColumnElement[Any], ...]:
        """The sums of total, reserved, capacity and used."""
        return summed(INV.total), summed(INV.reserved), summed(self.capacity), summed(self.used)


def amounts(tx: Transaction) -> StockSums:
    """Return the source and the columns of sums."""
    stock = StockSource(keeps_usage=tx.database.keeps_usage)
    owned = inventories.join(resource_providers, RP.id == INV.resource_provider_id)
    return StockSums(stock.with_usage(owned), cast(stock.usable_capacity, BigInteger), stock.used)


def summed(column: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the sum of a column as an integer: databases sum integers to decimals."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


def stocks_of_trees(tx: Transaction, root_ids: Collection[int]) -> dict[int, list[ClassTotals]]:
    """Return the stocks of trees, by root id."""
    return _stocks_by(tx, RP.root_provider_id, root_ids)


def stocks_of_providers(tx: Transaction, provider_ids: Collection[int]) -> dict[int, list[ClassTotals]]:
    """Return the providers' own stocks, by id."""
    return _stocks_by(tx, RP.id, provider_ids)


def _stocks_by(tx: Transaction, key: ColumnElement[int], ids: Collection[int]) -> dict[int, list[ClassTotals]]:
    if not ids:
        return {}
    have = amounts(tx)
    query = (
        select(key, INV.resource_class_id, *have.sums)
        .select_from(have.source)
        .where(key.in_(sorted(ids)))
        .group_by(key, INV.resource_class_id)
        .order_by(key, INV.resource_class_id)
    )
    rows = tx.tuples(query)
    names = tx.names.classes.names(tx.connection, {row[1] for row in rows})
    totals: dict[int, list[ClassTotals]] = defaultdict(list)
    for id_, class_id, *sums in rows:
        totals[id_].append(ClassTotals(names[class_id], *map(int, sums)))
    return totals


def per_tree_and_class(tx: Transaction) -> Select[Any]:
    """Return a query for (root_id, class_id, capacity, used) of all trees."""
    has = stock_by_tree(keeps_usage=tx.database.keeps_usage).c
    return select(
        has.root_provider_id.label("root_id"),
        has.resource_class_id.label("class_id"),
        # If more is reserved than there is, the capacity is zero rather than negative.
        summed(case((has.capacity > 0, has.capacity), else_=0)).label("capacity"),
        summed(has.used).label("used"),
    ).group_by(has.root_provider_id, has.resource_class_id)


def disabled_roots(tx: Transaction) -> CompoundSelect[tuple[int]]:
    """Return a query for the trees in which any provider has the trait, or is drained: reserved as a whole."""
    trait = tx.names.traits.ids(tx.connection, [DISABLED]).get(DISABLED)
    owners = select(_HAS.resource_provider_id).where(_HAS.trait_id == trait)
    own = and_(_DRAINED.provider_uuid == RP.uuid, INV.resource_class_id == _DRAINED.resource_class_id)
    drained = resource_providers.join(inventories, INV.resource_provider_id == RP.id).join(drained_inventories, own)
    return union(
        select(RP.root_provider_id).where(RP.id.in_(owners), HAS_ROOT),
        select(RP.root_provider_id).select_from(drained).where(INV.reserved >= INV.total, HAS_ROOT),
    )


def disabled_hosts(tx: Transaction) -> set[int]:
    """Return the roots of the trees that take no new consumers because of nova or of a drain."""
    return {root for (root,) in tx.execute(disabled_roots(tx))}


MAX_BITS = 62
"""The most classes that distinguish kinds. No cloud has more, and they would not fit into a BIGINT."""


class KindCount(NamedTuple):
    """A kind of trees, and how many there are."""

    classes: tuple[str, ...]
    trees: int


def kind_counts(tx: Transaction, *, limit: int) -> list[KindCount]:
    """Return the most numerous kinds of trees."""
    class_ids = [class_id for (class_id,) in tx.tuples(select(INV.resource_class_id).distinct())]
    bits = {class_id: 1 << place for place, class_id in enumerate(sorted(class_ids)[:MAX_BITS])}
    if not bits:
        return []
    each = per_tree_and_class(tx).subquery("each_class")
    trees = select(summed(_bit(bits, each.c.class_id)).label("kind")).group_by(each.c.root_id).subquery("trees")
    number = func.count().label("number")
    query = select(trees.c.kind, number).group_by(trees.c.kind).order_by(number.desc(), trees.c.kind).limit(limit)
    names = tx.names.classes.names(tx.connection, bits)
    return [KindCount(_classes(int(kind), bits, names), count) for kind, count in tx.tuples(query)]


def _bit(bits: Mapping[int, int], class_id: ColumnElement[int]) -> ColumnElement[int]:
    return case({id_: literal(bit, BigInteger) for id_, bit in bits.items()}, value=class_id, else_=literal(0))


def _classes(kind: int, bits: Mapping[int, int], names: Mapping[int, str]) -> tuple[str, ...]:
    return tuple([names[class_id] for class_id, bit in bits.items() if kind & bit])


def tree_loads(tx: Transaction) -> Subquery:
    """Return a subquery of (root_id, load) for every tree: the load of its most loaded class."""
    each = per_tree_and_class(tx).subquery("each_class")
    return select(each.c.root_id, _load(each).label("load")).group_by(each.c.root_id).subquery("loads")


def _load(each: Subquery) -> ColumnElement[float]:
    """Return the load of the most loaded class, over rows of per_tree_and_class; null without any capacity."""
    return func.max(case((each.c.capacity > 0, cast(each.c.used, Float) / each.c.capacity)))


def free_in_trees(tx: Transaction, wanted: Mapping[int, int]) -> Select[Any]:
    """Return a query for the roots of trees that have these amounts left in total, by class id."""
    each = per_tree_and_class(tx).subquery("each_class")
    enough = [
        (each.c.class_id == class_id) & (each.c.capacity - each.c.used >= literal(amount, BigInteger))
        for class_id, amount in sorted(wanted.items())
    ]
    return select(each.c.root_id).where(or_(*enough)).group_by(each.c.root_id).having(func.count() == len(wanted))


def of_kind(class_ids: Collection[int]) -> Select[Any]:
    """Return a query for the roots of trees that have exactly these classes."""
    has = INV.resource_class_id
    return (
        select(RP.root_provider_id)
        .select_from(inventories.join(resource_providers, RP.id == INV.resource_provider_id))
        .group_by(RP.root_provider_id)
        .having(
            func.count(func.distinct(has)) == len(class_ids),
            func.count(func.distinct(case((has.in_(sorted(class_ids)), has)))) == len(class_ids),
        )
    )


MAX_CHANGES = 200_000
"""The most journal rows that are added up to look back."""


class MappedHost(NamedTuple):
    """The root of a tree."""

    id: int
    uuid: str
    name: str


def hosts(tx: Transaction) -> list[MappedHost]:
    """Return the roots of all trees, in the natural order of their names."""
    rows = tx.tuples(select(RP.id, RP.uuid, NAME).where(RP.parent_provider_id.is_(None)))
    return [MappedHost(*row) for row in sorted(rows, key=lambda row: (natural_key(row[2]), row[0]))]


def hosts_with(tx: Transaction, beginning: str) -> list[int]:
    """Return the roots whose uuid starts with ``beginning``, at most two."""
    begins = RP.uuid.startswith(beginning.lower(), autoescape=True)
    return [root for (root,) in tx.tuples(select(RP.id).where(RP.parent_provider_id.is_(None), begins).limit(2))]


def held_classes(tx: Transaction) -> list[str]:
    """Return the names of the classes that any provider has, in the order of their ids."""
    rows = tx.tuples(select(INV.resource_class_id).select_from(inventories).distinct())
    ids = sorted([id_ for (id_,) in rows])
    names = tx.names.classes.names(tx.connection, ids)
    return [names[id_] for id_ in ids]


def project_names(tx: Transaction, *, most: int) -> list[str]:
    """Return the ids of some projects, newest first."""
    query = select(projects.c.external_id).order_by(projects.c.id.desc()).limit(most)
    return [name for (name,) in tx.tuples(query)]


def used_since(tx: Transaction, class_name: str, moment: datetime) -> dict[int, int] | None:
    """Return the growth of a class's usage since a moment, by tree; None if there are too many changes.

    The cost grows with the number of changes, up to MAX_CHANGES.
    """
    class_id = tx.names.classes.ids(tx.connection, [class_name]).get(class_name)
    rows = (
        select(J.root_provider_id, J.old_amount, J.new_amount)
        .where(J.time >= moment, J.kind == ALLOCATION, J.resource_class_id == class_id)
        .limit(MAX_CHANGES + 1)
        .subquery("rows")
    )
    grown = func.coalesce(rows.c.new_amount, 0) - func.coalesce(rows.c.old_amount, 0)
    query = select(rows.c.root_provider_id, cast(func.sum(grown), BigInteger), func.count()).group_by(
        rows.c.root_provider_id
    )
    found = tx.tuples(query)
    if sum(count for _root, _grown, count in found) > MAX_CHANGES:
        return None
    return {root: int(amount) for root, amount, _count in found if root is not None}

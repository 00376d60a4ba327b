"""How full trees are, and of which kind: trees with the same resource classes are of one kind."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Float, Select, Subquery, case, cast, func, literal, or_, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.console.stocks import INV, per_tree_and_class, summed
from placement.store.providers import RP
from placement.store.tables import inventories, resource_providers

MAX_BITS = 62
"""The most classes that distinguish kinds. No cloud has more, and they would not fit into a BIGINT."""


class KindCount(NamedTuple):
    """A kind of trees, and how many there are."""

    classes: tuple[str, ...]
    trees: int


def kind_counts(tx: Transaction, *, limit: int) -> list[KindCount]:
    """Return the most numerous kinds of trees."""
    class_ids = [class_id for (class_id,) in tx.tuples(select(INV.resource_class_id).distinct())]
    bits = _bits(class_ids)
    if not bits:
        return []
    each = per_tree_and_class(tx).subquery("each_class")
    trees = select(summed(_bit(bits, each.c.class_id)).label("kind")).group_by(each.c.root_id).subquery("trees")
    number = func.count().label("number")
    query = select(trees.c.kind, number).group_by(trees.c.kind).order_by(number.desc(), trees.c.kind).limit(limit)
    names = tx.names.classes.names(tx.connection, bits)
    return [KindCount(_classes(int(kind), bits, names), count) for kind, count in tx.tuples(query)]


def _bits(class_ids: Collection[int]) -> dict[int, int]:
    return {class_id: 1 << place for place, class_id in enumerate(sorted(class_ids)[:MAX_BITS])}


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

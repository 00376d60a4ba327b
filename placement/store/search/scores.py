"""Capacity and usage of whole trees, by root: the sums that trees are scored by."""

from collections.abc import Collection, Sequence
from functools import lru_cache

from sqlalchemy import BigInteger, Double, Integer, bindparam, case, cast, func, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import is_of_roots
from placement.store.stock import stock_by_tree
from placement.store.tables import provider_usages, resource_providers

TreeSums = tuple[int, ...]
"""The root of a tree, then its capacity of each class, then its usage of each class."""

ABSENT = -1
"""The id of a class that does not exist, and that no provider has."""


def tree_sums(
    tx: Transaction, classes: Sequence[int], others: Sequence[int], roots: Collection[int] | None = None
) -> list[TreeSums]:
    """Return the sums of every tree that has inventory of any class in ``classes`` or ``others``, in any order.

    Capacity is whole and excludes what is reserved, as in ``domain.inventory``. Conditions on trees are left to whoever
    reads the best of them: here they would cost more than all sums.

    Args:
        tx: the transaction.
        classes: the ids of the classes to sum; ABSENT for one that does not exist.
        others: further classes whose owners to include.
        roots: the trees to sum; None for all.
    """
    numbered = {f"class_{index}": class_id for index, class_id in enumerate(classes)}
    statement = _sums(len(classes), keeps_usage=tx.database.keeps_usage, listed=roots is not None)
    listed = {} if roots is None else {"roots": sorted(roots)}
    return tx.tuples(statement, {**numbered, **listed, "any_class": sorted({*classes, *others})})


def sums_by_name(
    tx: Transaction, classes: Sequence[str], others: Sequence[str], roots: Collection[int] | None = None
) -> list[TreeSums]:
    """Return the same for classes given by name."""
    ids = tx.names.classes.ids(tx.connection, {*classes, *others})
    return tree_sums(tx, [ids.get(name, ABSENT) for name in classes], [ids[name] for name in others], roots)


def class_sums(tx: Transaction, classes: Sequence[int], roots: Collection[int] | None = None) -> list[TreeSums]:
    """Return the same from kept usage, with None for a class that a tree has no inventory of.

    Args:
        tx: the transaction.
        classes: the ids of the classes to sum, all of which exist.
        roots: the trees to sum; None for all.
    """
    numbered = {f"class_{index}": class_id for index, class_id in enumerate(classes)}
    statement = _sums(len(classes), keeps_usage=True, listed=roots is not None, or_none=True)
    listed = {} if roots is None else {"roots": sorted(roots)}
    return tx.tuples(statement, {**numbered, **listed, "any_class": sorted(classes)})


def roots_with_unstocked_use(tx: Transaction, roots: Collection[int] | None = None) -> set[int]:
    """Return the trees with usage of classes that the provider has no inventory of: no sum includes such usage.

    Args:
        tx: the transaction.
        roots: the trees to look at; None for all.
    """
    listed = {} if roots is None else {"roots": sorted(roots)}
    return {root for (root,) in tx.tuples(_unstocked_use(listed=roots is not None), listed)}


@lru_cache(maxsize=128)
def _sums(classes: int, *, keeps_usage: bool, listed: bool, or_none: bool = False) -> PreparedStatement:
    has = stock_by_tree(keeps_usage=keeps_usage).c
    portions = [
        case((has.resource_class_id == bindparam(f"class_{index}", type_=Integer, literal_execute=True), amount))
        for amount in (has.capacity, cast(has.used, Double))  # sums of floats are cheap
        for index in range(classes)
    ]
    sums = [func.sum(portion) for portion in portions]
    columns = [cast(one if or_none else func.coalesce(one, 0), BigInteger) for one in sums]
    statement = (
        select(has.root_provider_id, *columns)
        .where(has.resource_class_id.in_(bindparam("any_class", expanding=True, literal_execute=True)))
        .group_by(has.root_provider_id)
    )
    return PreparedStatement(statement.where(is_of_roots(has.resource_provider_id)) if listed else statement)


@lru_cache(maxsize=2)
def _unstocked_use(*, listed: bool) -> PreparedStatement:
    owner, uses = resource_providers.c, provider_usages.c
    statement = (
        select(owner.root_provider_id)
        .distinct()
        .join(provider_usages, uses.resource_provider_id == owner.id)
        .where(uses.capacity.is_(None), uses.used != 0)
    )
    return PreparedStatement(statement.where(is_of_roots(uses.resource_provider_id)) if listed else statement)

"""Devices and their surroundings: what trees have left, and their capacity."""

from collections.abc import Collection
from functools import lru_cache

from sqlalchemy import BigInteger, bindparam, cast, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import is_of_roots
from placement.store.stock import stock_by_tree
from placement.store.tables import resource_provider_traits

ProviderAmount = tuple[int, int, int, int]
"""The root of a tree, a provider in it, a resource class, and an amount."""


def left_by_provider(
    tx: Transaction, classes: Collection[int], roots: Collection[int] | None = None
) -> list[ProviderAmount]:
    """Return what each provider, of all trees or of some, has left of some classes, if more than nothing."""
    statement = _amounts(left=True, keeps_usage=tx.database.keeps_usage, listed=roots is not None)
    return tx.tuples(statement, {"classes": sorted(classes), **({"roots": sorted(roots)} if roots is not None else {})})


def capacity_by_provider(tx: Transaction, classes: Collection[int]) -> list[ProviderAmount]:
    """Return each provider's capacity of some classes, in use or not."""
    statement = _amounts(left=False, keeps_usage=tx.database.keeps_usage, listed=False)
    return tx.tuples(statement, {"classes": sorted(classes)})


@lru_cache(maxsize=8)
def _amounts(*, left: bool, keeps_usage: bool, listed: bool) -> PreparedStatement:
    has = stock_by_tree(keeps_usage=keeps_usage).c
    amount = has.capacity - has.used if left else has.capacity
    statement = (
        select(has.root_provider_id, has.resource_provider_id, has.resource_class_id, cast(amount, BigInteger))
        .where(has.resource_class_id.in_(bindparam("classes", expanding=True, literal_execute=True)))
        .where(amount > 0)
    )
    return PreparedStatement(statement.where(is_of_roots(has.resource_provider_id)) if listed else statement)


def traits_of_devices(tx: Transaction, traits: Collection[int]) -> list[tuple[int, int]]:
    """Return (provider, trait) for each provider that has any of some traits."""
    return tx.tuples(_TRAITS, {"traits": sorted(traits)})


_HAS = resource_provider_traits.c
_TRAITS = select(_HAS.resource_provider_id, _HAS.trait_id).where(_HAS.trait_id.in_(bindparam("traits", expanding=True)))

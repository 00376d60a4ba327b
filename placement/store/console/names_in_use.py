"""The resource classes and traits that this cloud's providers have."""

from typing import NamedTuple

from sqlalchemy import select

from placement.store.connection.unit_of_work import Transaction
from placement.store.tables import inventories, resource_classes, resource_provider_traits, traits

MAX_NAMES = 1000


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

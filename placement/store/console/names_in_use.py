"""The resource classes and traits that this cloud's providers have, and who has a given identifier."""

from typing import NamedTuple

from sqlalchemy import or_, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import RP
from placement.store.tables import consumers, inventories, projects, resource_classes, resource_provider_traits, traits

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

"""What an identifier is the name of: a provider, a consumer, a project."""

from typing import NamedTuple

from sqlalchemy import or_, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import RP
from placement.store.tables import consumers, projects


class Bearers(NamedTuple):
    """The uuid of a provider, the uuid of a consumer and the id of a project that have an identifier, where any has."""

    provider: str | None
    consumer: str | None
    project: str | None


def known_as(tx: Transaction, identifier: str) -> Bearers:
    """Return what has an identifier; providers have their names, too."""
    uuid = identifier.lower()
    query = select(
        select(RP.uuid).where(or_(RP.uuid == uuid, RP.name == identifier)).order_by(RP.id).limit(1).scalar_subquery(),
        select(consumers.c.uuid).where(consumers.c.uuid == uuid).scalar_subquery(),
        select(projects.c.external_id).where(projects.c.external_id == identifier).scalar_subquery(),
    )
    return Bearers(*tx.tuples(query)[0])

"""Resolve an identifier: it may belong to a provider, a consumer or a project."""

from typing import NamedTuple

from sqlalchemy import or_, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import RP
from placement.store.tables import consumers, projects


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

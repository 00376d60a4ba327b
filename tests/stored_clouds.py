"""Clouds written as tree literals (tests/clouds.py), stored as rows: over HTTP each provider takes four requests."""

import uuid
from collections.abc import Iterable, Iterator, Mapping

from flask import Flask
from sqlalchemy import insert, select

from placement.services.marks import ensure_trait
from placement.services.resource_classes import ensure_class
from placement.store.connection.database import Database
from placement.store.tables import placement_aggregates, resource_provider_aggregates
from placement.store.tables import resource_providers as providers
from tests.clouds import Cloud, Provider, walk
from tests.stored_providers import StoredProvider, store_providers


def stored(app: Flask, *roots: Provider, aggregates: Mapping[str, str] | None = None) -> Cloud:
    """Create in an application's database what ``tests.clouds.build`` creates by requests."""
    database = app.extensions["placement"].database
    nodes = [node for _, node in walk(roots)]
    labels = {label for node in nodes for label in node.aggregates}
    known = {label: str(uuid.uuid4()) for label in sorted(labels)} | dict(aggregates or {})
    cloud = Cloud({node.name: str(uuid.uuid4()) for node in nodes}, known)
    for name in _custom(name for node in nodes for name in node.inventories):
        ensure_class(database, name)
    for name in _custom(name for node in nodes for name in node.traits):
        ensure_trait(database, name)
    store_providers(database, [*_as_stored(cloud, roots)])
    _add_to_aggregates(database, cloud, nodes)
    return cloud


def _custom(names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith("CUSTOM_")})


def _as_stored(cloud: Cloud, roots: tuple[Provider, ...]) -> Iterator[StoredProvider]:
    for parent, node in walk(roots):
        inventories = {}
        for name, inventory in node.inventories.items():
            fields = {"total": inventory} if isinstance(inventory, int) else inventory
            inventories[name] = {"max_unit": fields["total"], **fields}
        yield StoredProvider(
            uuid=cloud.providers[node.name],
            name=node.name,
            parent_uuid=None if parent is None else cloud.providers[parent.name],
            inventories=inventories,
            traits=node.traits,
            requests=len(inventories) + bool(node.traits),
        )


def _add_to_aggregates(database: Database, cloud: Cloud, nodes: list[Provider]) -> None:
    members = [(cloud.providers[node.name], cloud.aggregates[label]) for node in nodes for label in node.aggregates]
    if not members:
        return
    with database.writer.begin() as connection:
        there = {one for (one,) in connection.execute(select(placement_aggregates.c.uuid))}
        if missing := sorted({aggregate for _, aggregate in members} - there):
            connection.execute(insert(placement_aggregates), [{"uuid": one} for one in missing])
        ids = {
            one: id_ for id_, one in connection.execute(select(placement_aggregates.c.id, placement_aggregates.c.uuid))
        }
        of = {one: id_ for id_, one in connection.execute(select(providers.c.id, providers.c.uuid))}
        rows = [{"resource_provider_id": of[member], "aggregate_id": ids[aggregate]} for member, aggregate in members]
        connection.execute(insert(resource_provider_aggregates), rows)

"""Clouds as rows of one transaction, where over HTTP each provider takes four requests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flask import Flask
from sqlalchemy import Connection, Table, insert, select, update

from placement.services.names import ensure_class, ensure_trait
from placement.store import tables
from placement.store.connection.database import Database
from tests.clouds import Cloud, Provider, custom_names, walk

DEFAULTS = {"reserved": 0, "min_unit": 1, "max_unit": 2**31 - 1, "step_size": 1, "allocation_ratio": 1.0}


@dataclass(slots=True)
class StoredProvider:
    """A provider; ``inventories`` are as in requests, the fields of each by its class."""

    uuid: str
    name: str
    parent_uuid: str | None = None
    inventories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    traits: Sequence[str] = ()
    aggregates: Sequence[str] = ()
    requests: int | None = None
    """The number of requests that would have written it; None for one each for inventories and traits."""

    @property
    def generation(self) -> int:
        """Its generation after the requests."""
        return bool(self.inventories) + bool(self.traits) if self.requests is None else self.requests


def stored(app: Flask, *roots: Provider, aggregates: Mapping[str, str] | None = None) -> Cloud:
    """Create in an application's database what ``tests.clouds.build`` creates by requests."""
    database, cloud = app.extensions["placement"].database, Cloud.of(roots, aggregates)
    classes, traits = custom_names(roots)
    for name in classes:
        ensure_class(database, name)
    for name in traits:
        ensure_trait(database, name)
    providers = [
        StoredProvider(
            uuid=cloud.providers[node.name],
            name=node.name,
            parent_uuid=None if parent is None else cloud.providers[parent.name],
            inventories=node.stocks(),
            traits=node.traits,
            aggregates=[cloud.aggregates[label] for label in node.aggregates],
            requests=len(node.inventories) + bool(node.traits),
        )
        for parent, node in walk(roots)
    ]
    store_providers(database, providers)
    return cloud


def store_providers(database: Database, providers: Sequence[StoredProvider]) -> None:
    """Add providers, parents first; their classes and traits exist already."""
    with database.writer.begin() as connection:
        ids = {each.uuid: _store_provider(connection, each) for each in providers}
        class_ids = _ids(connection, tables.resource_classes, [name for each in providers for name in each.inventories])
        trait_ids = _ids(connection, tables.traits, [name for each in providers for name in each.traits])
        aggregate_ids = _aggregate_ids(connection, {uuid for each in providers for uuid in each.aggregates})
        rows = {
            tables.inventories: [
                {"resource_class_id": class_ids[name], **DEFAULTS, **fields, "resource_provider_id": ids[each.uuid]}
                for each in providers
                for name, fields in each.inventories.items()
            ],
            tables.resource_provider_traits: [
                {"resource_provider_id": ids[each.uuid], "trait_id": trait_ids[name]}
                for each in providers
                for name in each.traits
            ],
            tables.resource_provider_aggregates: [
                {"resource_provider_id": ids[each.uuid], "aggregate_id": aggregate_ids[uuid]}
                for each in providers
                for uuid in each.aggregates
            ],
        }
        for table, of_table in rows.items():
            if of_table:
                connection.execute(insert(table), of_table)


def _store_provider(connection: Connection, new: StoredProvider) -> int:
    """Insert a provider as requests do: a root refers to itself once its id is known."""
    columns = tables.resource_providers.c
    values: dict[str, Any] = {"uuid": new.uuid, "name": new.name, "generation": new.generation}
    if new.parent_uuid is not None:
        query = select(columns.id, columns.root_provider_id).where(columns.uuid == new.parent_uuid)
        parent, root = connection.execute(query).one()
        values |= {"parent_provider_id": parent, "root_provider_id": root}
    (id_,) = connection.execute(insert(tables.resource_providers).values(values)).inserted_primary_key
    if new.parent_uuid is None:
        connection.execute(update(tables.resource_providers).where(columns.id == id_).values(root_provider_id=id_))
    return int(id_)


def _ids(connection: Connection, table: Table, names: Iterable[str]) -> dict[str, int]:
    rows = connection.execute(select(table.c.id, table.c.name).where(table.c.name.in_({*names})))
    return {name: id_ for id_, name in rows}


def _aggregate_ids(connection: Connection, uuids: set[str]) -> dict[str, int]:
    """Return the ids of aggregates, which are created where they are new."""
    columns = tables.placement_aggregates.c
    query = select(columns.uuid, columns.id).where(columns.uuid.in_(uuids))
    if missing := sorted(uuids - {row.uuid for row in connection.execute(query)}):
        connection.execute(insert(tables.placement_aggregates), [{"uuid": uuid} for uuid in missing])
    return {row.uuid: row.id for row in connection.execute(query)}

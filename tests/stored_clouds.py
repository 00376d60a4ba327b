"""Clouds stored as rows in one transaction: over HTTP each provider takes four requests."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flask import Flask
from sqlalchemy import Connection, Table, insert, select, update

from placement.services.names import ensure_class, ensure_trait
from placement.store.connection.database import Database
from placement.store.tables import (
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from tests.clouds import Cloud, Provider, walk

Fields = Mapping[str, Any]
DEFAULTS = {"reserved": 0, "min_unit": 1, "max_unit": 2**31 - 1, "step_size": 1, "allocation_ratio": 1.0}


@dataclass(slots=True)
class StoredProvider:
    """A provider; ``inventories`` are as in requests, the fields of each by its class."""

    uuid: str
    name: str
    parent_uuid: str | None = None
    inventories: Mapping[str, Fields] = field(default_factory=dict)
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
    database, nodes = app.extensions["placement"].database, [node for _, node in walk(roots)]
    labels = {label for node in nodes for label in node.aggregates}
    uuids = {label: str(uuid.uuid4()) for label in sorted(labels)} | dict(aggregates or {})
    cloud = Cloud({node.name: str(uuid.uuid4()) for node in nodes}, uuids)
    for name in _custom(name for node in nodes for name in node.inventories):
        ensure_class(database, name)
    for name in _custom(name for node in nodes for name in node.traits):
        ensure_trait(database, name)
    store_providers(database, [*_as_stored(cloud, roots)])
    return cloud


def _custom(names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith("CUSTOM_")})


def _as_stored(cloud: Cloud, roots: tuple[Provider, ...]) -> Iterator[StoredProvider]:
    for parent, node in walk(roots):
        fields = {name: {"total": has} if isinstance(has, int) else has for name, has in node.inventories.items()}
        yield StoredProvider(
            uuid=cloud.providers[node.name],
            name=node.name,
            parent_uuid=None if parent is None else cloud.providers[parent.name],
            inventories={name: {"max_unit": of_class["total"], **of_class} for name, of_class in fields.items()},
            traits=node.traits,
            aggregates=[cloud.aggregates[label] for label in node.aggregates],
            requests=len(fields) + bool(node.traits),
        )


def store_providers(database: Database, providers: Sequence[StoredProvider]) -> None:
    """Add providers, parents first; their classes and traits exist already."""
    with database.writer.begin() as connection:
        ids = {each.uuid: _store_provider(connection, each) for each in providers}
        class_ids = _ids(connection, resource_classes.c.name, {name for each in providers for name in each.inventories})
        trait_ids = _ids(connection, traits.c.name, {name for each in providers for name in each.traits})
        aggregate_ids = _aggregate_ids(connection, {uuid for each in providers for uuid in each.aggregates})
        rows: dict[Table, list[dict[str, Any]]] = {
            inventories: [
                {"resource_provider_id": ids[each.uuid], "resource_class_id": class_ids[name], **DEFAULTS, **fields}
                for each in providers
                for name, fields in each.inventories.items()
            ],
            resource_provider_traits: [
                {"resource_provider_id": ids[each.uuid], "trait_id": trait_ids[name]}
                for each in providers
                for name in each.traits
            ],
            resource_provider_aggregates: [
                {"resource_provider_id": ids[each.uuid], "aggregate_id": aggregate_ids[aggregate]}
                for each in providers
                for aggregate in each.aggregates
            ],
        }
        for table, values in rows.items():
            if values:
                connection.execute(insert(table), values)


def _store_provider(connection: Connection, each: StoredProvider) -> int:
    """Insert a provider as requests do: a root refers to itself once its id is known."""
    values: dict[str, Any] = {"uuid": each.uuid, "name": each.name, "generation": each.generation}
    if each.parent_uuid is not None:
        columns = select(resource_providers.c.id, resource_providers.c.root_provider_id)
        parent, root = connection.execute(columns.where(resource_providers.c.uuid == each.parent_uuid)).one()
        values |= {"parent_provider_id": parent, "root_provider_id": root}
    (id_,) = connection.execute(insert(resource_providers).values(values)).inserted_primary_key
    if each.parent_uuid is None:
        itself = resource_providers.c.id == id_
        connection.execute(update(resource_providers).where(itself).values(root_provider_id=id_))
    return int(id_)


def _aggregate_ids(connection: Connection, uuids: set[str]) -> dict[str, int]:
    column = placement_aggregates.c.uuid
    if missing := sorted(uuids - _ids(connection, column, uuids).keys()):
        connection.execute(insert(placement_aggregates), [{"uuid": each} for each in missing])
    return _ids(connection, column, uuids)


def _ids(connection: Connection, column: Any, values: Iterable[str]) -> dict[str, int]:
    rows = connection.execute(select(column.table.c.id, column).where(column.in_(values)))
    return {name: id_ for id_, name in rows}

"""Providers written as rows in one transaction, where over HTTP each would take four requests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, insert, select, update

from placement.store.connection.database import Database
from placement.store.tables import inventories, resource_classes, resource_provider_traits, resource_providers, traits

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
    requests: int | None = None
    """The number of requests that would have written it; None for one each for inventories and traits."""

    @property
    def generation(self) -> int:
        """Its generation after the requests."""
        return bool(self.inventories) + bool(self.traits) if self.requests is None else self.requests


def store_providers(database: Database, providers: Sequence[StoredProvider]) -> None:
    """Add providers, parents first; their classes and traits exist already."""
    with database.writer.begin() as connection:
        ids = {}
        for one in providers:
            ids[one.uuid] = _store_provider(connection, one)
        class_ids = _ids(connection, resource_classes, {name for one in providers for name in one.inventories})
        trait_ids = _ids(connection, traits, {name for one in providers for name in one.traits})
        _store(connection, inventories, _inventories(providers, ids, class_ids))
        _store(
            connection,
            resource_provider_traits,
            [
                {"resource_provider_id": ids[one.uuid], "trait_id": trait_ids[name]}
                for one in providers
                for name in one.traits
            ],
        )


def _store_provider(connection: Connection, one: StoredProvider) -> int:
    """Insert a provider as requests do: a root refers to itself once its id is known."""
    values: dict[str, Any] = {"uuid": one.uuid, "name": one.name, "generation": one.generation}
    if one.parent_uuid is not None:
        columns = select(resource_providers.c.id, resource_providers.c.root_provider_id)
        parent, root = connection.execute(columns.where(resource_providers.c.uuid == one.parent_uuid)).one()
        values |= {"parent_provider_id": parent, "root_provider_id": root}
    (id_,) = connection.execute(insert(resource_providers).values(values)).inserted_primary_key
    if one.parent_uuid is None:
        itself = resource_providers.c.id == id_
        connection.execute(update(resource_providers).where(itself).values(root_provider_id=id_))
    return int(id_)


def _inventories(
    providers: Iterable[StoredProvider], ids: Mapping[str, int], class_ids: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    for one in providers:
        for name, fields in one.inventories.items():
            yield {
                "resource_provider_id": ids[one.uuid],
                "resource_class_id": class_ids[name],
                **DEFAULTS,
                **fields,
            }


def _ids(connection: Connection, table: Table, names: Iterable[str]) -> dict[str, int]:
    rows = connection.execute(select(table.c.id, table.c.name).where(table.c.name.in_(names)))
    return {name: id_ for id_, name in rows}


def _store(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    if listed := list(rows):
        connection.execute(insert(table), listed)

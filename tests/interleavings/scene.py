"""The small cloud that every run begins with, and what has become of it, in words that are the same for each run."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from flask import Flask
from sqlalchemy import Connection, bindparam, text

from placement.store.connection.database import Database
from tests.claims import entry
from tests.stored_clouds import StoredProvider, store_providers

NAMESPACE = uuid.UUID("5e5fb1d6-8d5e-4f0f-9a53-3b5fb9d1a5ef")
PROVIDERS = ("host", "numa", "spare", "empty", "child")
CONSUMERS = ("tenant", "lodger", "newcomer", "neighbour", "migration", "planned", "first", "second")
AGGREGATES = ("zone",)

HOST_VCPUS = 4

State = tuple[tuple[Any, ...], ...]
"""Rows, each beginning with the name of its table."""

_OF_OURS = "resource_providers p JOIN {0} ON {0}.resource_provider_id = p.id"
_AND_CLASS = f"{_OF_OURS} LEFT JOIN resource_classes c ON c.id = {{0}}.resource_class_id"
_QUERIES = {
    "provider": "p.uuid, p.name, p.generation, parent.uuid, root.uuid FROM resource_providers p "
    "LEFT JOIN resource_providers parent ON parent.id = p.parent_provider_id "
    "LEFT JOIN resource_providers root ON root.id = p.root_provider_id WHERE p.uuid IN :uuids",
    "inventory": f"p.uuid, c.name, total FROM {_AND_CLASS.format('inventories')} WHERE p.uuid IN :uuids",
    "usage": f"p.uuid, c.name, used FROM {_AND_CLASS.format('provider_usages')} WHERE p.uuid IN :uuids AND used <> 0",
    "allocation": f"p.uuid, c.name, consumer_id, used FROM {_AND_CLASS.format('allocations')} WHERE p.uuid IN :uuids",
    "trait": f"p.uuid, t.name FROM {_OF_OURS.format('resource_provider_traits')} "
    "JOIN traits t ON t.id = trait_id WHERE p.uuid IN :uuids",
    "aggregate": f"p.uuid, a.uuid FROM {_OF_OURS.format('resource_provider_aggregates')} "
    "JOIN placement_aggregates a ON a.id = aggregate_id WHERE p.uuid IN :uuids",
    "consumer": "c.uuid, c.generation, external_id FROM consumers c JOIN projects ON projects.id = c.project_id "
    "WHERE c.uuid IN :uuids",
    "claim": "consumer_uuid, generation FROM planner_claims WHERE consumer_uuid IN :uuids",
}


def _rows(connection: Connection, name: str, uuids: Iterable[str]) -> Sequence[Any]:
    query = text(f"SELECT {_QUERIES[name]}").bindparams(bindparam("uuids", expanding=True))
    return connection.execute(query, {"uuids": [*uuids]}).all()


class Scene:
    """The providers and consumers of one run. Each run has its own, so that nothing has to be cleared away.

    ``host`` has room for one of two further claims, beside what ``tenant`` holds; ``numa`` is a part of it. ``lodger``
    holds most of ``spare``. ``empty`` can be deleted or moved.
    """

    def __init__(self, run: int) -> None:
        self._run = run
        self.uuids = {
            label: str(uuid.uuid5(NAMESPACE, f"{label} {run}")) for label in (*PROVIDERS, *CONSUMERS, *AGGREGATES)
        }
        self.generations: Mapping[str, int] = {}

    def __getitem__(self, label: str) -> str:
        return self.uuids[label]

    def name(self, label: str) -> str:
        """Return the name of a provider."""
        return f"{label} {self._run}"

    def build(self, app: Flask) -> None:
        """Store it."""
        database: Database = app.extensions["placement"].database
        store_providers(
            database,
            [
                StoredProvider(
                    self["host"],
                    self.name("host"),
                    inventories={"VCPU": {"total": HOST_VCPUS}, "DISK_GB": {"total": 10}},
                    traits=["HW_CPU_X86_AVX"],
                ),
                StoredProvider(self["numa"], self.name("numa"), self["host"], {"VGPU": {"total": 2}}),
                StoredProvider(self["spare"], self.name("spare"), inventories={"VCPU": {"total": HOST_VCPUS}}),
                StoredProvider(self["empty"], self.name("empty")),
            ],
        )
        held = {
            self["tenant"]: entry({self["host"]: {"VCPU": 2}, self["numa"]: {"VGPU": 1}}),
            self["lodger"]: entry({self["spare"]: {"VCPU": 3}}),
        }
        status, document = send(app, "POST", "/allocations", body=held)
        assert status == 204, document
        with database.reader.begin() as connection:
            rows = _rows(connection, "provider", self.uuids.values())
        self.generations = {self._labels[identity]: generation for identity, _, generation, *_ in rows}

    def state(self, database: Database) -> State:
        """Return what is in the database now."""
        with database.reader.begin() as connection:
            rows = [
                (table, *map(self._words, row))
                for table in _QUERIES
                for row in _rows(connection, table, self.uuids.values())
            ]
        return tuple(sorted(rows, key=repr))

    @cached_property
    def _labels(self) -> dict[str, str]:
        return {identity: label for label, identity in self.uuids.items()}

    def _words(self, value: Any) -> Any:
        """Replace what differs from run to run."""
        if not isinstance(value, str):
            return value
        return self._labels.get(value, value.removesuffix(f" {self._run}"))


def send(
    app: Flask, method: str, path: str, *, version: str = "1.39", body: object = None, roles: str = "admin,service"
) -> tuple[int, Any]:
    """Send a request and return the status and the document."""
    headers = {"x-auth-token": "admin", "x-roles": roles, "openstack-api-version": f"placement {version}"}
    options: dict[str, Any] = {} if body is None else {"json": body}
    answer = app.test_client().open(path, method=method, headers=headers, **options)
    return answer.status_code, answer.get_json(silent=True)

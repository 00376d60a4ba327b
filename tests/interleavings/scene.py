"""The small cloud that every run begins with, and what has become of it, in words that are the same for each run."""

import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from flask import Flask
from sqlalchemy import bindparam, select

from placement.store.connection.database import Database
from placement.store.tables import (
    allocations,
    consumers,
    inventories,
    placement_aggregates,
    planner_claims,
    projects,
    provider_usages,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from tests.claims import entry
from tests.stored_clouds import StoredProvider, store_providers

NAMESPACE = uuid.UUID("5e5fb1d6-8d5e-4f0f-9a53-3b5fb9d1a5ef")
PROVIDERS = ("host", "numa", "spare", "empty", "child")
CONSUMERS = ("tenant", "lodger", "newcomer", "neighbour", "migration", "planned", "first", "second")
AGGREGATES = ("zone",)

HOST_VCPUS = 4

State = tuple[tuple[Any, ...], ...]
"""Rows, each beginning with the name of its table."""

_PARENT, _ROOT = resource_providers.alias(), resource_providers.alias()
_OURS = resource_providers.c.uuid.in_(bindparam("providers", expanding=True))
_THEIRS = consumers.c.uuid.in_(bindparam("consumers", expanding=True))
_WITH_CLASS = resource_providers.c.uuid, resource_classes.c.name


def _of_provider(table: Any) -> Any:
    return resource_providers.join(table, table.c.resource_provider_id == resource_providers.c.id)


def _with_class(table: Any) -> Any:
    return _of_provider(table).outerjoin(resource_classes, resource_classes.c.id == table.c.resource_class_id)


_QUERIES = {
    "provider": select(
        resource_providers.c.uuid,
        resource_providers.c.name,
        resource_providers.c.generation,
        _PARENT.c.uuid,
        _ROOT.c.uuid,
    )
    .select_from(
        resource_providers.outerjoin(_PARENT, resource_providers.c.parent_provider_id == _PARENT.c.id).outerjoin(
            _ROOT, resource_providers.c.root_provider_id == _ROOT.c.id
        )
    )
    .where(_OURS),
    "inventory": select(*_WITH_CLASS, inventories.c.total).select_from(_with_class(inventories)).where(_OURS),
    "usage": select(*_WITH_CLASS, provider_usages.c.used)
    .select_from(_with_class(provider_usages))
    .where(_OURS, provider_usages.c.used != 0),
    "allocation": select(*_WITH_CLASS, allocations.c.consumer_id, allocations.c.used)
    .select_from(_with_class(allocations))
    .where(_OURS),
    "trait": select(resource_providers.c.uuid, traits.c.name)
    .select_from(_of_provider(resource_provider_traits).join(traits))
    .where(_OURS),
    "aggregate": select(resource_providers.c.uuid, placement_aggregates.c.uuid)
    .select_from(
        _of_provider(resource_provider_aggregates).join(
            placement_aggregates, placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id
        )
    )
    .where(_OURS),
    "consumer": select(consumers.c.uuid, consumers.c.generation, projects.c.external_id)
    .select_from(consumers.join(projects, projects.c.id == consumers.c.project_id))
    .where(_THEIRS),
    "claim": select(planner_claims.c.consumer_uuid, planner_claims.c.generation).where(
        planner_claims.c.consumer_uuid.in_(bindparam("consumers", expanding=True))
    ),
}


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
            rows = connection.execute(_QUERIES["provider"], self._values).all()
        self.generations = {self._labels[identity]: generation for identity, _, generation, *_ in rows}

    def state(self, database: Database) -> State:
        """Return what is in the database now."""
        with database.reader.begin() as connection:
            rows = [
                (table, *map(self._words, row))
                for table, query in _QUERIES.items()
                for row in connection.execute(query, self._values)
            ]
        return tuple(sorted(rows, key=repr))

    @cached_property
    def _labels(self) -> dict[str, str]:
        return {identity: label for label, identity in self.uuids.items()}

    @property
    def _values(self) -> dict[str, Sequence[str]]:
        return {"providers": [self[label] for label in PROVIDERS], "consumers": [self[label] for label in CONSUMERS]}

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

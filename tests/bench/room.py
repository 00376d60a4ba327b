"""The cost of asking who should make room for a request: 1,000 hosts with 20 consumers each, on SQLite.

``python -m tests.bench.room`` prints a table; the figures are in docs/performance.md. CPU time of search and database,
which are one process here.
"""

import argparse
import gc
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from placement.allocators.fair_share import Queue, tree_of
from placement.api.fields import load_document
from placement.api.planner.request_document import planner_request
from placement.api.planner.request_schemas import REQUEST
from placement.services.fair_share.giving_back import ReclaimOptions
from placement.services.fair_share.room_search import RoomOnHost, room_for
from placement.services.fair_share.tenants import RoomWanted
from placement.services.marks import ensure_trait
from placement.services.planner.questions import PlannerOptions
from placement.settings import PlannerSettings
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.tables import metadata
from placement.tuning import spare_the_collector
from tests.databases import migrate, open_database

HOSTS, CONSUMERS = 1_000, 20
QUEUES, PROJECTS = 10, 5
SWITCHES, GPUS = 4, 4
SWITCH = "CUSTOM_HW_PCIE_SWITCH"
CLASSES = ("VCPU", "MEMORY_MB", "PGPU")
POOR = "poor"
"""The project that claims; it holds nothing."""

Row = dict[str, Any]
Body = dict[str, Any]


def settings() -> PlannerSettings:
    """Return ten queues with five projects each, and one with the project that claims; their weights differ."""
    queues = [
        Queue(f"root/q{queue}", (None, 1 + queue % 3), tuple([f"p{queue}.{number}" for number in range(PROJECTS)]))
        for queue in range(QUEUES)
    ]
    tree = tree_of([*queues, Queue("root/claims", (None, 4), (POOR,))])
    return PlannerSettings(fair_share=FairShareSettings(classes=CLASSES, queues=tree, keep_s=0), exclusive={})


@dataclass(slots=True)
class Rows:
    """The rows of a cloud, by table."""

    classes: Mapping[str, int]
    switch: int
    tables: dict[str, list[Row]] = field(
        default_factory=lambda: {
            name: []
            for name in ("resource_providers", "inventories", "resource_provider_traits", "consumers", "allocations")
        }
    )
    values: dict[str, int] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=partial(count, 1))
    _rng: random.Random = field(default_factory=partial(random.Random, 5))

    def provider(self, parent: int | None = None, root: int | None = None, **stocks: int) -> int:
        """Add a provider with its inventory, and return its id."""
        id_ = next(self._ids)
        self.tables["resource_providers"].append(
            {
                "id": id_,
                "uuid": self._uuid(),
                "name": f"p{id_}",
                "generation": 1,
                "parent_provider_id": parent,
                "root_provider_id": root or id_,
            }
        )
        for name, total in stocks.items():
            self.tables["inventories"].append(
                {"resource_provider_id": id_, "resource_class_id": self.classes[name], "total": total, "reserved": 0}
                | {"min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": 1.0}
            )
        return id_

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128)))

    def consumer(self, project: int, taken: Mapping[tuple[int, str], int]) -> None:
        """Add a consumer of a project with its allocations."""
        name = self._uuid()
        self.values[name] = self._rng.randint(0, 100)
        self.tables["consumers"].append({"uuid": name, "project_id": project, "user_id": 1, "generation": 1})
        for (provider, class_), used in taken.items():
            self.tables["allocations"].append(
                {"resource_provider_id": provider, "resource_class_id": self.classes[class_]}
                | {"consumer_id": name, "used": used}
            )

    def host(self, sizes: Callable[[random.Random], int]) -> None:
        """Add a host that its consumers fill: VCPUs by the given sizes, 4 GB for each, and fifteen of sixteen GPUs."""
        rng = self._rng
        vcpus = [sizes(rng) for _consumer in range(CONSUMERS)]
        root = self.provider(VCPU=sum(vcpus), MEMORY_MB=4096 * sum(vcpus) + rng.randint(0, 4096))
        gpus = []
        for _switch in range(SWITCHES):
            switch = self.provider(root, root)
            self.tables["resource_provider_traits"].append({"resource_provider_id": switch, "trait_id": self.switch})
            gpus += [self.provider(switch, root, PGPU=1) for _gpu in range(GPUS)]
        rng.shuffle(gpus)
        holders = [*gpus[1:], *[None] * CONSUMERS][:CONSUMERS]
        for size, gpu in zip(vcpus, holders, strict=True):
            taken = {(root, "VCPU"): size, (root, "MEMORY_MB"): 4096 * size}
            # Squares: the first queues have the most.
            project = 1 + int(QUEUES * PROJECTS * rng.random() ** 2)
            self.consumer(project, taken if gpu is None else {**taken, (gpu, "PGPU"): 1})


@reads
def _ids(tx: Transaction) -> tuple[Mapping[str, int], int]:
    return tx.names.classes.ids(tx.connection, CLASSES), tx.names.traits.ids(tx.connection, [SWITCH])[SWITCH]


def write_cloud(database: Database, sizes: Callable[[random.Random], int]) -> Mapping[str, int]:
    """Write the cloud, and return the values of its consumers."""
    ensure_trait(database, SWITCH)
    rows = Rows(*_ids(database))
    for _host in range(HOSTS):
        rows.host(sizes)
    projects = [f"p{queue}.{number}" for queue in range(QUEUES) for number in range(PROJECTS)]
    with database.writer.begin() as connection:
        tables = metadata.tables
        connection.execute(insert(tables["projects"]), [{"external_id": name} for name in projects])
        connection.execute(insert(tables["users"]), [{"external_id": "user"}])
        for name, of in rows.tables.items():
            connection.execute(insert(tables[name]), of)
    return rows.values


REQUESTS: Mapping[str, Body] = {
    "16 VCPUs": {"groups": {"": {"resources": {"VCPU": 16}}}},
    "31 VCPUs and 120 GB": {"groups": {"": {"resources": {"VCPU": 31, "MEMORY_MB": 122_880}}}},
    "64 VCPUs and 256 GB": {"groups": {"": {"resources": {"VCPU": 64, "MEMORY_MB": 262_144}}}},
    "4 GPUs and 8 VCPUs": {
        "groups": {"": {"resources": {"VCPU": 8}}, "_G": {"resources": {"PGPU": 1}, "count": 4}},
    },
    "4 GPUs behind one switch": {
        "groups": {"": {"resources": {"VCPU": 8}}, "_G": {"resources": {"PGPU": 1}, "count": 4}},
        "within": [{"groups": ["_G"], "level": "pcie"}],
    },
    "8 GPUs behind two switches": {
        "groups": {
            "": {"resources": {"VCPU": 16}},
            "_G": {"resources": {"PGPU": 1}, "count": 4},
            "_H": {"resources": {"PGPU": 1}, "count": 4},
        },
        "within": [{"groups": ["_G"], "level": "pcie"}, {"groups": ["_H"], "level": "pcie"}],
    },
}
SIZES: Mapping[str, Callable[[random.Random], int]] = {
    "three sizes": lambda rng: rng.choice([2, 4, 8]),
    "all differ": lambda rng: rng.randint(1, 16),
}


@dataclass(frozen=True, slots=True)
class Question:
    """Asks who makes room."""

    database: Database
    planner: PlannerSettings
    values: Mapping[str, int]

    def ask(self, body: Body, priority: int | None) -> RoomOnHost:
        """Return the answer."""
        planner = self.planner
        options = PlannerOptions(planner.profile_in_force, planner.levels, planner.exclusive)
        wanted = RoomWanted(planner_request(load_document(REQUEST, body), planner), options)
        return room_for(
            self.database,
            planner.fair_share,
            wanted,
            member=POOR,
            wishes=[],
            options=ReclaimOptions(self.values, priority=priority),
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    spare_the_collector()
    print("| consumers | request | chosen by | give back | complete | CPU ms |\n| --- | --- | --- | --- | --- | --- |")
    for name, sizes in SIZES.items():
        with tempfile.TemporaryDirectory() as directory:
            url = f"sqlite:///{Path(directory) / 'placement.sqlite'}"
            migrate(url)
            database = open_database(url)
            question = Question(database, settings(), write_cloud(database, sizes))
            for request, body in REQUESTS.items():
                for priority in (None, 50):
                    answer, cpu_ms = _measured(partial(question.ask, body, priority), chosen.repeats)
                    by = "value" if priority is None else f"priority {priority}"
                    giving = answer.giving
                    number = len(giving.given_back) if giving.feasible else "nobody can"
                    print(f"| {name} | {request} | {by} | {number} | {giving.complete} | {cpu_ms:,.0f} |", flush=True)
            database.dispose()


def _measured(ask: Callable[[], RoomOnHost], repeats: int) -> tuple[RoomOnHost, float]:
    """Return the answer and the median CPU time."""
    answer, found = ask(), []
    gc.collect()
    for _repeat in range(repeats):
        before = time.process_time_ns()
        ask()
        found.append((time.process_time_ns() - before) / 1e6)
    return answer, statistics.median(found)


if __name__ == "__main__":
    main()

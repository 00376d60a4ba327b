"""The cost of asking who should make room for a request: 1,000 hosts with 20 consumers each, on SQLite.

``python -m tests.bench.room`` prints a table; the figures are in docs/performance.md. CPU time of search and database,
which are one process here.
"""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from placement.allocators.fair_share.queues import Queue, tree_of
from placement.api.fields import load_document
from placement.api.planner.request_document import planner_request
from placement.api.planner.request_fields import REQUEST
from placement.services.fair_share.giving_back import GivenBack, ReclaimOptions
from placement.services.fair_share.room_search import room_for
from placement.services.planner.questions import PlannerOptions
from placement.settings import PlannerSettings
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database
from placement.store.tables import traits
from placement.tuning import spare_the_collector
from tests.bench.clouds import Node
from tests.bench.meters import cpu_ms
from tests.bench.rows import Rows, insert_rows, make_owners, rows_for
from tests.databases import migrate, open_database

HOSTS, CONSUMERS = 1_000, 20
QUEUES, PROJECTS = 10, 5
SWITCHES, GPUS = 4, 4
SWITCH = "CUSTOM_HW_PCIE_SWITCH"
CLASSES = ("VCPU", "MEMORY_MB", "PGPU")
POOR = "poor"
"""The project that claims; it holds nothing."""

REPEATS = 3
FOUR_GPUS = {"resources": {"PGPU": 1}, "count": 4}
REQUESTS: Mapping[str, dict[str, Any]] = {
    "16 VCPUs": {"groups": {"": {"resources": {"VCPU": 16}}}},
    "64 VCPUs and 256 GB": {"groups": {"": {"resources": {"VCPU": 64, "MEMORY_MB": 262_144}}}},
    "4 GPUs and 8 VCPUs": {"groups": {"": {"resources": {"VCPU": 8}}, "_G": FOUR_GPUS}},
    "4 GPUs behind one switch": {
        "groups": {"": {"resources": {"VCPU": 8}}, "_G": FOUR_GPUS},
        "within": [{"groups": ["_G"], "level": "pcie"}],
    },
    "8 GPUs behind two switches": {
        "groups": {"": {"resources": {"VCPU": 16}}, "_G": FOUR_GPUS, "_H": FOUR_GPUS},
        "within": [{"groups": ["_G"], "level": "pcie"}, {"groups": ["_H"], "level": "pcie"}],
    },
}


def planner_settings() -> PlannerSettings:
    """Return ten queues with five projects each, and one with the project that claims; their weights differ."""
    queues = [
        Queue(f"root/q{queue}", (None, 1 + queue % 3), tuple([f"p{queue}.{number}" for number in range(PROJECTS)]))
        for queue in range(QUEUES)
    ]
    tree = tree_of([*queues, Queue("root/claims", (None, 4), (POOR,))])
    return PlannerSettings(fair_share=FairShareSettings(classes=CLASSES, queues=tree, keep_s=0), exclusive={})


def add_host(rows: Rows, name: str) -> None:
    """Add a host that its consumers fill: VCPUs, 4 GB for each, and fifteen of sixteen GPUs."""
    chance = rows.chance
    vcpus = [chance.randint(1, 16) for _ in range(CONSUMERS)]
    memory_mb = 4096 * sum(vcpus) + chance.randint(0, 4096)
    switches = [
        Node(
            f"{name}-s{switch}",
            {},
            (SWITCH,),
            children=[Node(f"{name}-g{switch}.{n}", {"PGPU": 1}) for n in range(GPUS)],
        )
        for switch in range(SWITCHES)
    ]
    (root, _), *below = rows.add_providers(Node(name, {"VCPU": sum(vcpus), "MEMORY_MB": memory_mb}, children=switches))
    gpus = [id_ for id_, node in below if node.inventory]
    chance.shuffle(gpus)
    for size, gpu in zip(vcpus, [*gpus[1:], *[None] * CONSUMERS], strict=False):
        taken = [(root, "VCPU", size), (root, "MEMORY_MB", 4096 * size)]
        # Squares: the first queues have the most.
        project = 1 + int(QUEUES * PROJECTS * chance.random() ** 2)
        rows.allocate(rows.new_consumer(), project, taken if gpu is None else [*taken, (gpu, "PGPU", 1)])


def write_cloud(database: Database) -> Mapping[str, int]:
    """Write the cloud, and return the values of its consumers."""
    projects = [f"p{queue}.{number}" for queue in range(QUEUES) for number in range(PROJECTS)]
    with database.writer.begin() as connection:
        connection.execute(insert(traits), {"name": SWITCH})
        make_owners(connection, aggregates=["unused"], names=projects)
        rows = rows_for(connection)
        for number in range(HOSTS):
            add_host(rows, f"host{number}")
        values = {uuid: rows.chance.randint(0, 100) for uuid, *_ in rows.tables["consumers"]}
        insert_rows(connection, rows)
    return values


def ask(database: Database, body: Mapping[str, Any], options: ReclaimOptions) -> GivenBack:
    """Return who makes room."""
    planner = planner_settings()
    in_force = PlannerOptions(planner.profile_in_force, planner.levels, planner.exclusive)
    request = planner_request(load_document(REQUEST, body), planner)
    return room_for(database, planner.fair_share, request, terms=in_force, member=POOR, wishes=[], options=options)


def main() -> None:
    """Measure and print."""
    spare_the_collector()
    print("| request | chosen by | give back | complete | CPU ms |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{Path(directory) / 'placement.sqlite'}"
        migrate(url)
        database = open_database(url)
        values = write_cloud(database)
        for request, body in REQUESTS.items():
            for priority in (None, 50):
                search = partial(ask, database, body, ReclaimOptions(values, priority=priority))
                giving = search().giving
                number = len(giving.given_back) if giving.feasible else "nobody can"
                by = "value" if priority is None else f"priority {priority}"
                spent = cpu_ms(search, repeats=REPEATS)
                print(f"| {request} | {by} | {number} | {giving.complete} | {spent:,.0f} |", flush=True)
        database.dispose()


if __name__ == "__main__":
    main()

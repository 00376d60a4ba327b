"""The cost of the planner: candidates on 1,000 hosts with devices beside the plain API, and claims beside GET and PUT.

``python -m tests.bench.planner`` prints the tables, or only ``candidates``, ``claims`` or ``gangs``. The server runs
in this process: CPU time is that of its code and of SQLite; claims by many clients run on PostgreSQL.
"""

import contextlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any

from flask import Flask
from sqlalchemy import Connection, delete, insert, text

from placement.app import create_app
from placement.settings import DatabaseSettings, RankingSettings, Settings
from placement.store import tables
from tests.bench.clouds import Node
from tests.postgresql import running_postgresql

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": None}

HOSTS, LIMIT, ROUNDS, GANG = 1000, 10, 10, 64
CLIENTS, FULL_HOSTS, FREE_HOSTS, CLAIM_ROUNDS = 64, 58, 6, 5


def device_host(name: str, *, gpus: int = 1) -> Node:
    """Return a host with two NUMA nodes of four switches, each with GPUs and a NIC."""
    host = Node(name, {"MEMORY_MB": 1 << 20})
    for numa in range(2):
        node = Node(f"{name}-numa{numa}", {"VCPU": 64}, ("HW_NUMA_ROOT",))
        for index in range(4):
            switch = Node(f"{name}-switch{numa}.{index}", {}, ("CUSTOM_HW_PCIE_SWITCH",))
            switch.children += [Node(f"{switch.name}-gpu{gpu}", {"PGPU": 1}) for gpu in range(gpus)]
            switch.children.append(Node(f"{switch.name}-nic", {"SRIOV_NET_VF": 8}, ("HW_NIC_SRIOV",)))
            node.children.append(switch)
        host.children.append(node)
    return host


class Rows:
    """Writes hosts into an empty database."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._classes = _ids(connection, "resource_classes")
        self._traits = _ids(connection, "traits")
        self._next = 1

    def write(self, hosts: Sequence[Node]) -> None:
        rows: dict[Any, list[dict[str, Any]]] = {
            table: [] for table in (tables.resource_providers, tables.inventories, tables.resource_provider_traits)
        }
        for host in hosts:
            self._add(host, None, None, rows)
        for table, values in rows.items():
            self._connection.execute(insert(table), values)

    def _add(self, node: Node, parent: int | None, root: int | None, rows: dict[Any, list[dict[str, Any]]]) -> None:
        own, self._next = self._next, self._next + 1
        place = {"parent_provider_id": parent, "root_provider_id": root or own}
        identity = {"id": own, "uuid": str(uuid.UUID(int=own)), "name": node.name, "generation": 0}
        rows[tables.resource_providers].append({**identity, **place})
        rule = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
        for name, total in node.inventory.items():
            spot = {"resource_provider_id": own, "resource_class_id": self._classes[name]}
            rows[tables.inventories].append({**spot, **rule, "total": total, "max_unit": total})
        for name in node.traits:
            rows[tables.resource_provider_traits].append({"resource_provider_id": own, "trait_id": self._traits[name]})
        for child in node.children:
            self._add(child, own, root or own, rows)


def _ids(connection: Connection, table: str) -> dict[str, int]:
    return dict(connection.execute(text(f"SELECT name, id FROM {table}")).all())  # type: ignore[arg-type]


def made(url: str, *, ranked: bool = True) -> Flask:
    """Return a server; with ``ranked`` it orders plain candidates, too."""
    database = DatabaseSettings(connection=url, sync_on_startup=True, max_pool_size=16, max_overflow=48)
    ranking = RankingSettings(enabled=ranked)
    return create_app(Settings(database=database, ranking=ranking, auth_strategy="noauth2"))


@contextlib.contextmanager
def served(url: str, hosts: Sequence[Node]) -> Iterator[Flask]:
    """Yield a server on a database with hosts."""
    app = made(url)
    app.test_client().put("/traits/CUSTOM_HW_PCIE_SWITCH", headers=HEADERS)
    database = app.extensions["placement"].database
    with database.writer.begin() as connection:
        Rows(connection).write(hosts)
        connection.execute(text("ANALYZE"))
    yield app
    database.dispose()


def plain(app: Flask, pairs: int) -> Callable[[], Any]:
    """Return a request for GPUs, each with a NIC on its switch, with every pair spelled out."""
    groups = "&".join(
        f"required_S{n}=CUSTOM_HW_PCIE_SWITCH&resources_G{n}=PGPU:1&resources_N{n}=SRIOV_NET_VF:1"
        f"&same_subtree=_S{n},_G{n},_N{n}"
        for n in range(pairs)
    )
    path = f"/allocation_candidates?{groups}&group_policy=isolate&limit={LIMIT}"
    return lambda: app.test_client().get(path, headers=HEADERS)


def planner(app: Flask, pairs: int) -> Callable[[], Any]:
    """Return the equivalent planner request, as one joint allocation."""
    nics = {"resources": {"SRIOV_NET_VF": 1}, "count": "per-subtree"}
    body = {
        "groups": {"_GPU": {"resources": {"PGPU": 1}, "count": pairs}, "_NIC": nics},
        "affinity": [{"groups": ["_GPU", "_NIC"], "level": "pcie"}],
        "limit": LIMIT,
    }
    return lambda: app.test_client().post("/planner/v1/candidates", json=body, headers=HEADERS)


def cpu_ms(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """Return the median CPU time of each of several requests that have candidates, sent in turn."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, times in zip(calls, found, strict=True):
            begun = time.process_time()
            answer = call()
            times.append((time.process_time() - begun) * 1000)
            assert len(answer.json["allocation_requests"]) == LIMIT, answer.text
    return [statistics.median(times) for times in found]


def candidate_rows() -> Iterator[str]:
    hosts = [device_host(f"host{number}") for number in range(HOSTS)]
    with tempfile.TemporaryDirectory() as directory, served(f"sqlite:///{directory}/bench.db", hosts) as app:
        unranked = made(f"sqlite:///{directory}/bench.db", ranked=False)
        for pairs in (1, 2, 4, 8):
            best, any_, new = cpu_ms([plain(app, pairs), plain(unranked, pairs), planner(app, pairs)])
            ratios = f"{new / best:.2f}x | {new / any_:.1f}x"
            yield f"| {pairs} | {best:.1f} | {any_:.1f} | {new:.1f} | {ratios} |"
        unranked.extensions["placement"].database.dispose()


class Race:
    """Clients that want two GPUs on one switch; there are fewer free switches than clients."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self.requests: Counter[int] = Counter()

    def with_claims(self) -> bool:
        groups = {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}
        body = {"groups": groups, "within": [{"groups": ["_GPU"], "level": "pcie"}]}
        consumer = {"uuid": str(uuid.uuid4()), **OWNER}
        return self._sent("POST", "/planner/v1/claims", {**body, "consumer": consumer}).status_code == 201

    def with_get_and_put(self) -> bool:
        query = (
            "required_S=CUSTOM_HW_PCIE_SWITCH&resources_A=PGPU:1&resources_B=PGPU:1&same_subtree=_S,_A,_B"
            f"&group_policy=isolate&limit={LIMIT}"
        )
        while found := self._sent("GET", f"/allocation_candidates?{query}").json["allocation_requests"]:
            # As nova does: choose among the best, so that not all clients want the same one.
            body = {**random.choice(found), **OWNER}
            if self._sent("PUT", f"/allocations/{uuid.uuid4()}", body).status_code == 204:
                return True
        return False

    def _sent(self, method: str, path: str, body: object = None) -> Any:
        answer = self._app.test_client().open(path, method=method, headers=HEADERS, json=body)
        self.requests[answer.status_code] += 1
        assert answer.status_code < 500, answer.text
        return answer


def race(app: Flask, way: str) -> tuple[float, float, Counter[int]]:
    """Return claims per second, CPU ms per claim, and the statuses of all requests."""
    runner = Race(app)
    barrier = threading.Barrier(CLIENTS + 1)
    won: list[bool] = []

    def client() -> None:
        barrier.wait()
        won.append(getattr(runner, way)())

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begun, spent = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
    assert sum(won) == 4 * 2 * FREE_HOSTS, sum(won)
    return sum(won) / seconds, cpu * 1000 / sum(won), runner.requests


def claim_rows() -> Iterator[str]:
    hosts = [device_host(f"host{number}", gpus=2) for number in range(FULL_HOSTS + FREE_HOSTS)]
    with running_postgresql() as server, served(server.database("bench"), hosts) as app:
        fill(app)
        ways = {"with_get_and_put": "GET + PUT, again when lost", "with_claims": "POST /planner/v1/claims"}
        found: dict[str, list[tuple[float, float, Counter[int]]]] = {way: [] for way in ways}
        for _ in range(CLAIM_ROUNDS):
            for way, results in found.items():
                results.append(race(app, way))
                free(app)
        for way, results in found.items():
            rate, cpu = statistics.median([one[0] for one in results]), statistics.median([one[1] for one in results])
            yield f"| {ways[way]} | {rate:.1f} | {cpu:.1f} | {dict(sum([one[2] for one in results], Counter()))} |"


GANGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a GPU each": ({"groups": {"_GPU": {"resources": {"PGPU": 1}}}}, {}),
    "a GPU each, on different hosts": (
        {"groups": {"_GPU": {"resources": {"PGPU": 1}}}},
        {"apart": {"level": "host"}},
    ),
    "a GPU and a NIC on its switch each": (
        {
            "groups": {"_GPU": {"resources": {"PGPU": 1}}, "_NIC": {"resources": {"SRIOV_NET_VF": 1}}},
            "affinity": [{"groups": ["_GPU", "_NIC"], "level": "pcie"}],
        },
        {},
    ),
}
"""What each member requests, and the rules for the gang."""


def gang_rows() -> Iterator[str]:
    hosts = [device_host(f"host{number}") for number in range(HOSTS)]
    with tempfile.TemporaryDirectory() as directory, served(f"sqlite:///{directory}/bench.db", hosts) as app:
        for name, (wanted, rules) in GANGS.items():
            found = []
            for further in ({"dry_run": True}, {}):
                one, all_ = claim_cpu_ms(app, [{**wanted, **further}, {**wanted, **rules, **further, "members": GANG}])
                found.append(f"{one:.1f} | {all_:.1f} | {all_ / one:.2f}x")
            yield f"| {name} | {' | '.join(found)} |"


def claim_cpu_ms(app: Flask, bodies: Sequence[dict[str, Any]]) -> list[float]:
    """Return the median CPU time of each of several claims, made in turn and released."""
    found: list[list[float]] = [[] for _ in bodies]
    for _ in range(ROUNDS):
        for body, times in zip(bodies, found, strict=True):
            wanted = {**body, "consumer": {"uuid": str(uuid.uuid4()), **OWNER}}
            begun = time.process_time()
            answer = app.test_client().post("/planner/v1/claims", json=wanted, headers=HEADERS)
            times.append((time.process_time() - begun) * 1000)
            assert answer.status_code in (200, 201), answer.text
            free(app)
    return [statistics.median(times) for times in found]


def fill(app: Flask) -> None:
    """Allocate all GPUs of the first hosts."""
    database = app.extensions["placement"].database
    with database.writer.begin() as connection:
        gpu = _ids(connection, "resource_classes")["PGPU"]
        spots = connection.execute(
            text(
                "SELECT i.resource_provider_id FROM inventories i JOIN resource_providers p "
                "ON p.id = i.resource_provider_id JOIN resource_providers r ON r.id = p.root_provider_id "
                "WHERE i.resource_class_id = :gpu ORDER BY r.id, p.id"
            ),
            {"gpu": gpu},
        ).scalars()
        taken = list(spots)[: FULL_HOSTS * 16]
        connection.execute(text("INSERT INTO projects (external_id) VALUES ('full')"))
        connection.execute(text("INSERT INTO users (external_id) VALUES ('full')"))
        owner = {"uuid": FULL, "project_id": 1, "user_id": 1, "generation": 1}
        connection.execute(insert(tables.consumers), [owner])
        rows = [{"resource_provider_id": p, "resource_class_id": gpu, "consumer_id": FULL, "used": 1} for p in taken]
        connection.execute(insert(tables.allocations), rows)


FULL = str(uuid.UUID(int=1))


def free(app: Flask) -> None:
    """Release what was claimed."""
    with app.extensions["placement"].database.writer.begin() as connection:
        connection.execute(delete(tables.allocations).where(tables.allocations.c.consumer_id != FULL))
        connection.execute(delete(tables.consumers).where(tables.consumers.c.uuid != FULL))


def candidates() -> list[str]:
    return [
        f"## Candidates: GPUs with a NIC on the same switch, {HOSTS:,} hosts of 8 + 8, limit={LIMIT}, SQLite",
        "",
        "The plain form spells out each pair as groups with same_subtree. Ranked, which is the default, it returns the",
        "best, as the planner does, which means considering all hosts. Unranked, any ten candidates will do.",
        "Device layouts are kept between requests; the first request for several takes up to seven times as long.",
        f"{measured()} Medians of {ROUNDS} rounds in turn.",
        "",
        "| pairs | CPU ms of the plain form, ranked | unranked | of the joint allocation | to ranked | to unranked |",
        "| --- | --- | --- | --- | --- | --- |",
        *candidate_rows(),
    ]


def claims() -> list[str]:
    return [
        f"## Claims: {CLIENTS} clients want two GPUs on one switch, {8 * FREE_HOSTS} can have them, PostgreSQL",
        "",
        f"{measured()} Medians of {CLAIM_ROUNDS} rounds in turn.",
        "",
        "| way | claims a second | CPU ms for each | statuses |",
        "| --- | --- | --- | --- |",
        *claim_rows(),
    ]


def gangs() -> list[str]:
    return [
        f"## Gangs: {GANG} members of one claim and its first member alone, {HOSTS:,} hosts of 8 + 8, SQLite",
        "",
        f"{measured()} Medians of {ROUNDS} rounds in turn, in CPU ms: planned (`dry_run`), and planned and allocated.",
        "",
        f"| what | planned: one | {GANG} | to one | allocated: one | {GANG} | to one |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *gang_rows(),
    ]


def measured() -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return f"Measured on {date.today()}, commit {commit.stdout.strip()}."


def main(wanted: Sequence[str]) -> None:
    for name in wanted or SECTIONS:
        print("\n".join(SECTIONS[name]()), end="\n\n")


SECTIONS = {"candidates": candidates, "claims": claims, "gangs": gangs}

if __name__ == "__main__":
    main(sys.argv[1:])

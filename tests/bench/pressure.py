"""Claims under pressure: many clients on a few nearly full hosts, and claims that cannot be placed in a large cloud.

``python -m tests.bench.pressure mixed [postgresql|mariadb]`` and ``... hopeless`` print the results. Each client
releases its claims at once, so that some claim can always succeed.
"""

import contextlib
import random
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import text

from tests import servers
from tests.bench.clouds import Node
from tests.bench.loading import load_idle
from tests.bench.meters import CpuMeter, spent_ms, with_children
from tests.bench.planner import HEADERS, OWNER, device_host, made
from tests.bench.rows import provider_uuid
from tests.bench.sides import Answer, Caller
from tests.mariadb import running_mariadb
from tests.postgresql import running_postgresql

CLIENTS, SECONDS, WORKERS, THREADS = 32, 12.0, 2, 16
HOSTS, FREE_GPUS = 8, 24
TREES, ROUNDS = 2000, 5
TIMEOUT_S = 120

ONE = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
TWO = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}}
PAIR = {**TWO, "within": [{"groups": ["_GPU"], "level": "pcie"}]}
HOPELESS = {**TWO, "within": [{"groups": ["_GPU"], "level": "numa"}]}
MIXES = {
    "pairs": [PAIR],
    "exclusive": [{**ONE, "exclusive": [{"groups": ["_GPU"], "level": "pcie"}]}],
    "gangs of three": [{**PAIR, "members": 3}],
}
MIXES["mixed"] = [body for mix in MIXES.values() for body in mix]

Deadlocks = Callable[[], int]
"""Returns how many deadlocks the database has counted."""


@contextlib.contextmanager
def postgresql() -> Iterator[tuple[str, Deadlocks]]:
    with running_postgresql() as server:
        url = server.database("pressure")

        def deadlocks() -> int:
            with psycopg.connect(url, autocommit=True) as connection:
                row = connection.execute("SELECT sum(deadlocks)::int FROM pg_stat_database").fetchone()
                return int(row[0]) if row else 0

        yield url, deadlocks


@contextlib.contextmanager
def mariadb() -> Iterator[tuple[str, Deadlocks]]:
    with running_mariadb() as server:
        url = server.database("pressure")

        def deadlocks() -> int:
            with server.cursor("pressure") as cursor:
                cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")
                row = cursor.fetchone()
                return int(row[1]) if row else 0

        yield url, deadlocks


DATABASES = {"postgresql": postgresql, "mariadb": mariadb}


@contextlib.contextmanager
def serving(url: str, hosts: Sequence[Node]) -> Iterator[tuple[str, CpuMeter]]:
    """Serve hosts with gunicorn; yield the server's URL and its meter."""
    app = made(url)
    app.test_client().put("/traits/CUSTOM_HW_PCIE_SWITCH", headers=HEADERS)
    app.test_client().put("/resource_classes/CUSTOM_PCIE_LOCK", headers=HEADERS)
    database = app.extensions["placement"].database
    with database.writer.begin() as connection:
        load_idle(connection, hosts)
    if database.dialect == "postgresql":
        with database.writer.begin() as connection:
            connection.execute(text("ANALYZE"))
    database.dispose()
    with tempfile.TemporaryDirectory() as name:
        sections = servers.default_sections(url)
        sections["placement_database"] |= {"max_pool_size": "20", "max_overflow": "20"}
        servers.write_configuration(Path(name), sections)
        served = servers.started_server(servers.this_project(), Path(name), workers=WORKERS, threads=THREADS)
        try:
            yield served.url, CpuMeter(lambda: with_children(served.process.pid))
        finally:
            served.stop()


def locked_host(name: str) -> Node:
    """Return a host with two GPUs on each of eight switches, which have locks."""
    host = device_host(name, gpus=2)
    for numa in host.children:
        for switch in numa.children:
            switch.inventory["CUSTOM_PCIE_LOCK"] = 1000
    return host


def poor_host(name: str) -> Node:
    """Return a host with two NUMA nodes of one GPU each."""
    nodes = [Node(f"{name}-numa{number}", {"VCPU": 64}, ("HW_NUMA_ROOT",)) for number in range(2)]
    for node in nodes:
        node.children.append(Node(f"{node.name}-gpu", {"PGPU": 1}))
    return Node(name, {"MEMORY_MB": 1 << 20}, children=nodes)


def claimed(call: Caller, body: dict[str, Any]) -> tuple[Answer, list[str]]:
    """Claim, and return the answer with the consumers that now hold something."""
    answer = call("POST", "/planner/v1/claims", {**body, "consumer": {"uuid": str(uuid.uuid4()), **OWNER}})
    if answer.status != 201:
        return answer, []
    said = answer.document()
    return answer, [one["consumer"]["uuid"] for one in said.get("members", [said])]


def fill(url: str) -> None:
    """Allocate GPUs until only a few are left, scattered over the hosts."""
    call = Caller(url, timeout_s=TIMEOUT_S)
    for _ in range(HOSTS * 16 - FREE_GPUS):
        claimed(call, ONE)
    call.close()


class Run:
    """Clients that claim and release until a deadline."""

    def __init__(self, url: str, mix: Sequence[dict[str, Any]]) -> None:
        self._url = url
        self._mix = mix
        self.seconds: list[float] = []
        self.statuses: Counter[str] = Counter()

    def go(self) -> float:
        """Let all clients claim; return the successful claims per second."""
        begun = time.monotonic()
        threads = [threading.Thread(target=self._client, args=(begun + SECONDS,)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.statuses["201"] / (time.monotonic() - begun)

    def _client(self, deadline: float) -> None:
        call = Caller(self._url, timeout_s=TIMEOUT_S)
        while time.monotonic() < deadline:
            answer, consumers = claimed(call, random.choice(self._mix))
            self.seconds.append(answer.seconds)
            self.statuses[_told(answer)] += 1
            for consumer in consumers:
                assert call("DELETE", f"/allocations/{consumer}").status == 204
        call.close()


def _told(answer: Answer) -> str:
    if answer.status == 201:
        return "201"
    error = answer.document()["errors"][0]
    return f"{answer.status} {error.get('code')}{'' if error.get('complete', True) else ' cut off'}"


def mixed(kind: str) -> None:
    """Print how claims fare on nearly full hosts."""
    hosts = [locked_host(f"host{number}") for number in range(HOSTS)]
    with DATABASES[kind]() as (database, deadlocks), serving(database, hosts) as (url, meter):
        fill(url)
        for name, mix in MIXES.items():
            run, before, spent = Run(url, mix), deadlocks(), meter.read()
            rate = run.go()
            cpu = spent_ms(spent, meter.read()) / max(1, run.statuses["201"])
            print(
                f"{kind}, {name}: {rate:.1f} claims a second, slowest {max(run.seconds):.2f} s, "
                f"{cpu:.0f} ms CPU of the server each, {deadlocks() - before} deadlocks, {dict(run.statuses)}",
                flush=True,
            )


def hopeless() -> None:
    """Print what a claim that cannot be placed costs, and how long it delays plain writers."""
    with (
        postgresql() as (database, _deadlocks),
        serving(database, [poor_host(f"h{n}") for n in range(TREES)]) as server,
    ):
        url, meter = server
        call = Caller(url, timeout_s=TIMEOUT_S)
        claim = {**HOPELESS, "consumer": {"uuid": str(uuid.uuid4()), **OWNER}}
        calls = {
            "candidates": ("/planner/v1/candidates", HOPELESS),
            "candidates, explained": ("/planner/v1/candidates", {**HOPELESS, "explain": True}),
            "claim": ("/planner/v1/claims", claim),
            "gang of 64": ("/planner/v1/claims", {**claim, "members": 64}),
        }
        for name, (path, body) in calls.items():
            costs: dict[str, list[float]] = {"after a change": [], "again": []}
            for number in range(ROUNDS):
                _put(call, number)
                for cost in costs.values():
                    spent = meter.read()
                    answer = call("POST", path, body)
                    cost.append(spent_ms(spent, meter.read()))
            told = [f"{statistics.median(cost):.1f} ms {when}" for when, cost in costs.items()]
            print(f"{name}: {answer.status}, CPU of the server {', '.join(told)}", flush=True)
        for name, body in (("nothing", None), ("candidates", HOPELESS), ("claims", claim)):
            print(f"slowest PUT beside {name}: {1000 * _slowest_put(url, body):.0f} ms", flush=True)


def _slowest_put(url: str, body: dict[str, Any] | None) -> float:
    """Return the longest wait of a plain writer while another client sends requests that cannot be placed."""
    is_over = threading.Event()
    path = "/planner/v1/claims" if body and "consumer" in body else "/planner/v1/candidates"

    def ask() -> None:
        call = Caller(url, timeout_s=TIMEOUT_S)
        while body is not None and not is_over.is_set():
            call("POST", path, body)

    beside = threading.Thread(target=ask)
    beside.start()
    call, slowest = Caller(url, timeout_s=TIMEOUT_S), 0.0
    deadline = time.monotonic() + 10
    for number in range(10**6):
        slowest = max(slowest, _put(call, number).seconds)
        if time.monotonic() > deadline:
            break
    is_over.set()
    beside.join()
    return slowest


def _put(call: Caller, number: int) -> Answer:
    """Allocate something else from a host, as a plain writer does."""
    host = provider_uuid(f"h{number % TREES}")
    entry = {**OWNER, "allocations": {host: {"resources": {"MEMORY_MB": 1}}}}
    answer = call("PUT", f"/allocations/{uuid.uuid4()}", entry)
    assert answer.status == 204, answer.body
    return answer


if __name__ == "__main__":
    if sys.argv[1] == "mixed":
        mixed(*sys.argv[2:] or ["postgresql"])
    else:
        hopeless()

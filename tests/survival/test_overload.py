"""Four times as many clients as server threads: they wait longer, but all are served, and memory stays level.

``--long`` sends 200,000 requests, as many as a busy cloud does in some hours.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.servers import Served
from tests.survival.deployment import check_database, configured
from tests.survival.load import send
from tests.survival.traffic import Traffic, resident_mb, workers

WORKERS = 2
THREADS = 4
HOSTS = 30
REQUESTS = 600
SAMPLES = 20
MAX_GROWTH = 1.05
"""The growth of a worker's memory allowed in the second half of a long run."""


@pytest.fixture
def served(postgresql_url: str, tmp_path: Path) -> Iterator[Served]:
    directory = configured(tmp_path, postgresql_url)
    started = servers.started_server(servers.this_project(), directory, workers=WORKERS, threads=THREADS)
    yield started
    started.stop()


def host(url: str, number: int) -> str:
    made = send(url, "POST", "/resource_providers", {"name": f"host{number}"}).document
    inventories = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096}}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    assert send(url, "PUT", f"/resource_providers/{made['uuid']}/inventories", body).status == 200
    uuid: str = made["uuid"]
    return uuid


def test_a_crowd_is_served_and_memory_stays_level(served: Served, tmp_path: Path, is_long: bool) -> None:
    count = 200_000 if is_long else REQUESTS
    hosts = [host(served.url, number) for number in range(HOSTS)]
    processes = sorted(workers(served))
    memory: list[float] = []
    with Traffic(served.url, hosts, clients=4 * WORKERS * THREADS) as traffic:
        for sample in range(1, SAMPLES + 1):
            traffic.wait_for(sample * count // SAMPLES)
            memory.append(max(resident_mb(pid) for pid in processes))
            print(time.strftime("%H:%M:%S"), traffic.answered, f"{memory[-1]:.1f} MB", flush=True)
    print(f"{traffic.answered} answers {dict(traffic.statuses)}, the slowest after {traffic.slowest_s:.1f} s")
    assert sorted(workers(served)) == processes, "a worker was replaced"
    assert send(served.url, "GET", "/readycheck").status == 200
    assert traffic.statuses[200] > count / 2
    if is_long:
        assert memory[-1] < MAX_GROWTH * memory[SAMPLES // 2]
    check_database(tmp_path)

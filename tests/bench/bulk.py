"""Bulk claims and bursts of claims on PostgreSQL: members and claims per second, and the cost of each.

``python -m tests.bench.bulk`` prints the table, or only the rows that are named. The server is gunicorn with two
workers; CPU time includes the server and the database.
"""

import json
import random
import statistics
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.bench.clouds import Node
from tests.bench.meters import CpuMeter, spent_ms, with_children
from tests.bench.planner import OWNER, device_host, measured
from tests.bench.pressure import serving
from tests.bench.sides import Caller
from tests.postgresql import running_postgresql

ROUNDS, TIMEOUT_S = 3, 120
FLAT, DEVICES = 5000, 500
MEMBERS, GANGS, OF_A_GANG = 1000, 100, 8
CLIENTS, SECONDS = 32, 6.0
OF_THE_BEST = 10
DECODER = json.JSONDecoder()

FLAVOR = {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 20}
SMALL = {"groups": {"": {"resources": FLAVOR}}}
PAIR = {
    "groups": {"_GPU": {"resources": {"PGPU": 1}}, "_NIC": {"resources": {"SRIOV_NET_VF": 1}}},
    "affinity": [{"groups": ["_GPU", "_NIC"], "level": "pcie"}],
}
NOVAS_QUERY = "resources=" + ",".join(f"{name}:{amount}" for name, amount in FLAVOR.items()) + "&limit=1000"


class Measured(NamedTuple):
    """What was achieved in a period of time."""

    done: int
    seconds: float
    cpu_ms: float
    statuses: Counter[int]


class Bench:
    """A server with a cloud."""

    def __init__(self, url: str, database: str, meter: CpuMeter) -> None:
        self.url = url
        self._database = database
        with psycopg.connect(database) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        postmaster = int((Path(row[0]) / "postmaster.pid").read_text().split()[0])
        self._meters = (meter, CpuMeter(lambda: with_children(postmaster)))

    def measured(self, work: Callable[[], tuple[int, Counter[int]]]) -> Measured:
        """Measure some work, then delete what it allocated."""
        before, begun = [meter.read() for meter in self._meters], time.perf_counter()
        done, statuses = work()
        seconds = time.perf_counter() - begun
        after = [meter.read() for meter in self._meters]
        self._forget()
        return Measured(done, seconds, sum(map(spent_ms, before, after)), statuses)

    def _forget(self) -> None:
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute("DELETE FROM allocations")
            connection.execute("DELETE FROM consumers")
            connection.execute("DELETE FROM planner_claims")
            connection.execute("VACUUM ANALYZE")

    def one_gang(self) -> tuple[int, Counter[int]]:
        """Claim a gang of a thousand members."""
        return self._claims([{**SMALL, "members": MEMBERS}])

    def gangs(self) -> tuple[int, Counter[int]]:
        """Claim gangs, four at a time."""
        return self._in_threads(4, lambda: self._claims([{**PAIR, "members": OF_A_GANG}] * (GANGS // 4)))

    def single_claims(self) -> tuple[int, Counter[int]]:
        """Claim for one consumer at a time from all clients at once."""
        deadline = time.monotonic() + SECONDS
        return self._in_threads(CLIENTS, lambda: self._claims(iter(lambda: _until(deadline, SMALL), None)))

    def get_and_put(self) -> tuple[int, Counter[int]]:
        """Get candidates and allocate one of them, from all clients at once."""
        deadline = time.monotonic() + SECONDS
        return self._in_threads(CLIENTS, lambda: self._pairs(deadline))

    def _in_threads(self, number: int, work: Callable[[], tuple[int, Counter[int]]]) -> tuple[int, Counter[int]]:
        found: list[tuple[int, Counter[int]]] = []
        threads = [threading.Thread(target=lambda: found.append(work())) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == number, "a client has failed"
        return sum(done for done, _ in found), sum([statuses for _, statuses in found], Counter())

    def _claims(self, bodies: Any) -> tuple[int, Counter[int]]:
        call, statuses, done = Caller(self.url, timeout_s=TIMEOUT_S), Counter[int](), 0
        for body in bodies:
            answer = call("POST", "/planner/v1/claims", {**body, "consumer": {"uuid": str(uuid.uuid4()), **OWNER}})
            statuses[answer.status] += 1
            done += body.get("members", 1) if answer.status == 201 else 0
        call.close()
        return done, statuses

    def _pairs(self, deadline: float) -> tuple[int, Counter[int]]:
        call, statuses, done = Caller(self.url, timeout_s=TIMEOUT_S), Counter[int](), 0
        while time.monotonic() < deadline:
            found = _first_candidates(call("GET", f"/allocation_candidates?{NOVAS_QUERY}").body, OF_THE_BEST)
            answer = call("PUT", f"/allocations/{uuid.uuid4()}", {**random.choice(found), **OWNER})
            statuses[answer.status] += 1
            done += answer.status == 204
        call.close()
        return done, statuses


def _until(deadline: float, body: dict[str, Any]) -> dict[str, Any] | None:
    return body if time.monotonic() < deadline else None


def _first_candidates(body: bytes, number: int) -> list[Any]:
    """Return the first candidates of an answer; parsing them all would cost as much as answering, on the same cores."""
    begun = b'{"allocation_requests":['
    assert body.startswith(begun)
    text, place, found = body[len(begun) : len(begun) + 1000 * number].decode(), 0, []
    for _ in range(number):
        candidate, place = DECODER.raw_decode(text, place)
        found.append(candidate)
        place += 1
    return found


def flat_host(name: str) -> Node:
    """Return a host without nested providers."""
    return Node(name, {"VCPU": 64, "MEMORY_MB": 1 << 18, "DISK_GB": 2000}, ("HW_CPU_X86_VMX",))


Work = Callable[[Bench], tuple[int, Counter[int]]]
ROWS: dict[str, tuple[str, Callable[[str], Node], int, Work]] = {
    "gang": (f"{MEMBERS:,} equal members, flat-{FLAT}", flat_host, FLAT, Bench.one_gang),
    "gangs": (
        f"{GANGS} gangs of {OF_A_GANG} GPUs with a NIC on the switch, {DEVICES} hosts of 8 + 8",
        device_host,
        DEVICES,
        Bench.gangs,
    ),
    "singles": (f"single claims, {CLIENTS} clients, flat-{FLAT}", flat_host, FLAT, Bench.single_claims),
    "plain": (f"GET + PUT with nova's query, {CLIENTS} clients, flat-{FLAT}", flat_host, FLAT, Bench.get_and_put),
}


def rows(wanted: Sequence[str]) -> Iterator[str]:
    for name in wanted:
        title, host, number, work = ROWS[name]
        hosts = [host(f"host{place}") for place in range(number)]
        with running_postgresql() as server:
            database = server.database("bulk")
            with serving(database, hosts) as (url, meter):
                bench = Bench(url, database, meter)
                bench.measured(lambda work=work, bench=bench: work(bench))
                found = [bench.measured(lambda work=work, bench=bench: work(bench)) for _ in range(ROUNDS)]
        rate = statistics.median([one.done / one.seconds for one in found])
        cpu = statistics.median([one.cpu_ms / max(1, one.done) for one in found])
        yield f"| {title} | {rate:.0f} | {cpu:.2f} | {dict(sum([one.statuses for one in found], Counter()))} |"


HEADER = ["| what | a second | CPU ms for each | statuses |", "| --- | --- | --- | --- |"]


def main(wanted: Sequence[str]) -> None:
    print(f"{measured()} Medians of {ROUNDS} rounds; CPU time of the server and of the database.", *HEADER, sep="\n")
    for row in rows(wanted or list(ROWS)):
        print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

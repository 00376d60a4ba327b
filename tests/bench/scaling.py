"""Measures a worker as a cloud grows: ``python -m tests.bench.scaling 1000 10000 100000`` prints a row for each size.

The server runs in this process on PostgreSQL, or with ``--mariadb`` on MariaDB, best first; CPU time is given as server
+ database. Hosts are flat, or with ``--nested`` have three providers each. Memory is that of the process at the end,
including the interpreter and libraries.
"""

import argparse
import resource
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from flask import Flask
from sqlalchemy import TextClause, text

from placement.services.journal import put_in_order
from placement.store.tables import REFERENCE_TABLES
from placement.tuning import spare_the_collector
from tests.bench.bulk import FLAVOR, SMALL, flat_host
from tests.bench.bursts import BURSTS, RESERVE, USE, burst
from tests.bench.clouds import Node
from tests.bench.floor import floor
from tests.bench.loading import insert_rows, rows_for
from tests.bench.meters import CpuMeter, spent_ms, with_children
from tests.bench.planner import HEADERS, OWNER, made
from tests.mariadb import running_mariadb
from tests.postgresql import running_postgresql

Started = AbstractContextManager[tuple[str, int]]

TIMES, TOGETHER, WRITTEN_AT_ONCE = 15, 16, 20_000
ASKED = "resources=" + ",".join(f"{name}:{amount}" for name, amount in FLAVOR.items())


def nested_host(name: str) -> Node:
    """Return a host with two NUMA nodes."""
    below = [Node(f"{name}-numa{number}", {"VCPU": 32, "MEMORY_MB": 1 << 17}, ("HW_NUMA_ROOT",)) for number in range(2)]
    return Node(name, {"DISK_GB": 2000}, ("HW_CPU_X86_VMX",), children=below)


class Worker:
    """A server in this process, with a meter for its database."""

    def __init__(self, app: Flask, database: CpuMeter) -> None:
        self._app = app
        self._database = database

    def cpu_ms(self, work: Callable[[], Any], *, calls: int = 1, after: Callable[[], None] | None = None) -> str:
        """Return the median CPU times of the server and the database for one call, each after a change."""
        work()
        server, database = [], []
        for _ in range(TIMES):
            (after or self.claim)()
            before, begun = self._database.read(), time.process_time()
            work()
            server.append((time.process_time() - begun) * 1000 / calls)
            database.append(spent_ms(before, self._database.read()) / calls)
        return f"{statistics.median(server):.1f} + {statistics.median(database):.1f}"

    def cpu_ms_after_bursts(self, change: TextClause) -> str:
        """Return the medians for the 10 best after a thousand random hosts have changed, as ``cpu_ms`` does."""
        server, database = [], []
        for number in range(BURSTS):
            burst(self._app, change, number)
            before, begun = self._database.read(), time.process_time()
            self.find()
            server.append((time.process_time() - begun) * 1000)
            database.append(spent_ms(before, self._database.read()))
        return f"{statistics.median(server):.1f} + {statistics.median(database):.1f}"

    def find(self, limit: int = 10) -> None:
        found = self._app.test_client().get(f"/allocation_candidates?{ASKED}&limit={limit}", headers=HEADERS)
        assert found.data.count(b'{"allocations"') == limit  # Parsing it would cost more.

    def claim(self) -> None:
        body = {**SMALL, "consumer": {"uuid": str(uuid.uuid4()), **OWNER}}
        assert self._app.test_client().post("/planner/v1/claims", json=body, headers=HEADERS).status_code == 201

    def claim_together(self) -> None:
        """Claim from as many clients as wait for one worker in a burst."""
        threads = [threading.Thread(target=self.claim) for _ in range(TOGETHER)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextmanager
def on_postgresql() -> Iterator[tuple[str, int]]:
    """Yield the URL of an empty database, and the process id of its server."""
    with running_postgresql() as server:
        url = server.database("scaling")
        with psycopg.connect(url) as plain:
            found = plain.execute("SHOW data_directory").fetchone()
        assert found is not None
        yield url, int((Path(found[0]) / "postmaster.pid").read_text().split()[0])


@contextmanager
def on_mariadb() -> Iterator[tuple[str, int]]:
    """Yield the same for MariaDB."""
    with running_mariadb() as server:
        url = server.database("scaling")
        with server.cursor("scaling") as cursor:
            cursor.execute("SELECT @@pid_file")
            found = cursor.fetchone()
        assert found is not None
        yield url, int(Path(found[0]).read_text())


ANALYZE = {"postgresql": "ANALYZE", "mysql": f"ANALYZE TABLE {', '.join(table.name for table in REFERENCE_TABLES)}"}


def row(hosts: int, host: Callable[[str], Node], started: Callable[[], Started]) -> str:
    with started() as (url, server):
        app = made(url)
        database = app.extensions["placement"].database
        with database.writer.begin() as connection:
            rows = rows_for(connection)
            for first in range(0, hosts, WRITTEN_AT_ONCE):
                for number in range(first, min(hosts, first + WRITTEN_AT_ONCE)):
                    rows.add_tree(host(f"h{number}"))
                insert_rows(connection, rows)
        put_in_order(database)  # as if it had been written over time
        with database.writer.begin() as connection:
            connection.execute(text(ANALYZE[database.dialect])).close()

        def add_host() -> None:
            with database.writer.begin() as connection:
                rows.add_tree(host(str(uuid.uuid4())))
                insert_rows(connection, rows)

        worker = Worker(app, CpuMeter(lambda: with_children(server)))
        begun = time.perf_counter()
        worker.find()
        first_s = time.perf_counter() - begun
        cells = [
            worker.cpu_ms(worker.find),
            worker.cpu_ms(worker.find, after=add_host),
            worker.cpu_ms_after_bursts(RESERVE),
            worker.cpu_ms_after_bursts(USE),
            worker.cpu_ms(lambda: worker.find(limit=1000)),
            worker.cpu_ms(worker.claim),
            worker.cpu_ms(worker.claim_together, calls=TOGETHER),
        ]
        database.dispose()
    memory_mb = resident_mb()
    return f"| {hosts:,} | {first_s:.2f} | {' | '.join(cells)} | {memory_mb:.0f} |"


def resident_mb() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


HEADER = [
    "| hosts | first, s | 10 best | a new host | 1,000 restocked | 1,000 used | 1,000 best | claim | 16 at once | MB |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
]


def table(sizes: Sequence[int], host: Callable[[str], Node], started: Callable[[], Started]) -> Iterator[str]:
    yield from HEADER
    for hosts in sizes:
        yield row(hosts, host, started)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--nested", action="store_true", help="Hosts with two NUMA nodes each.")
    parser.add_argument("--mariadb", action="store_true", help="On MariaDB instead of PostgreSQL.")
    options = parser.parse_args()
    spare_the_collector()
    print(floor(), flush=True)
    host, started = nested_host if options.nested else flat_host, on_mariadb if options.mariadb else on_postgresql
    for line in table(options.hosts, host, started):
        print(line, flush=True)

"""Measures a worker as a cloud grows: ``python -m tests.bench.scaling 1000 10000 100000`` prints a row for each size.

The server runs in this process on PostgreSQL, or with ``--mariadb`` on MariaDB, best first; CPU time is given as server
+ database. Hosts are flat, or with ``--nested`` have three providers each. Memory is that of the process at the end,
including the interpreter and libraries.
"""

import argparse
import contextlib
import resource
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from flask import Flask
from sqlalchemy import text

from placement.app import create_app
from placement.domain.identity import CURRENT_REQUEST, Identity, ServedRequest
from placement.services.journal import put_in_order
from placement.settings import DatabaseSettings, Settings
from placement.store.tables import REFERENCE_TABLES
from placement.tuning import spare_the_collector
from tests.bench.cases import FLAVOR_QUERY, SMALL_CLAIM
from tests.bench.clouds import numa
from tests.bench.meters import Pids, floor, metered, postmaster, with_children
from tests.bench.rows import insert_rows, write_cloud
from tests.bench.work import OWNER
from tests.mariadb import running_mariadb
from tests.postgresql import running_postgresql

TIMES, TOGETHER = 15, 16
BURST, BURSTS = 1000, 9
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
ANALYZE = {"postgresql": "ANALYZE", "mysql": f"ANALYZE TABLE {', '.join(table.name for table in REFERENCE_TABLES)}"}
COLUMNS = ("hosts", "first, s", "10 best", "a new host", "1,000 restocked", "1,000 used", "1,000 best", "claim")
HEADER = f"| {' | '.join(COLUMNS)} | 16 at once | MB |\n|{'---|' * (len(COLUMNS) + 2)}"

RESTOCK = text(
    "UPDATE inventories SET reserved = (resource_provider_id * 7 + :number) % 29"
    " WHERE resource_class_id = 0 AND resource_provider_id = :provider"
)
USE = text(
    "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used)"
    " SELECT resource_provider_id, 0, 'burst', 1 FROM inventories"
    " WHERE :number >= 0 AND resource_class_id = 0 AND resource_provider_id = :provider"
)
WITH_VCPUS = text("SELECT resource_provider_id FROM inventories WHERE resource_class_id = 0")


class Worker:
    """A server in this process, and the processes of its database."""

    def __init__(self, app: Flask, database_pids: Pids) -> None:
        self._app = app
        self._pids = {"database": database_pids}
        self._database = app.extensions["placement"].database

    def cost(self, work: Callable[[], Any], *, after: Callable[[int], Any] | None = None, calls: int = 1) -> str:
        """Return the median CPU times of the server and the database for one call, each after a change."""
        work()
        server, database = [], []
        for number in range(TIMES if after is None else BURSTS):
            (after or self.claim)(number)
            with metered(self._pids) as spent:
                begun = time.process_time()
                work()
                server.append((time.process_time() - begun) * 1000 / calls)
            database.append(spent["database"] / calls)
        return f"{statistics.median(server):.1f} + {statistics.median(database):.1f}"

    def find(self, limit: int = 10) -> None:
        """Get the best candidates."""
        client = self._app.test_client()
        answer = client.get(f"/allocation_candidates?{FLAVOR_QUERY}&limit={limit}", headers=HEADERS)
        assert answer.data.count(b'{"allocations"') == limit  # Parsing it would cost more.

    def claim(self, _number: int = 0) -> None:
        """Claim for a new consumer."""
        body = {**SMALL_CLAIM, "consumer": {"uuid": str(uuid.uuid4()), **OWNER}}
        assert self._app.test_client().post("/planner/v1/claims", json=body, headers=HEADERS).status_code == 201

    def claim_together(self) -> None:
        """Claim from as many clients as wait for one worker in a burst."""
        threads = [threading.Thread(target=self.claim) for _ in range(TOGETHER)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def burst(self, change: Any) -> Callable[[int], None]:
        """Return what changes a thousand random hosts at once, in the journal as a request does."""

        def changed(number: int) -> None:
            CURRENT_REQUEST.set(ServedRequest("req-burst", identity=Identity("admin", "admin"), route="PUT /somewhere"))
            with self._database.writer.begin() as connection:
                providers = connection.scalars(WITH_VCPUS).all()
                chosen = Random(number).sample(providers, min(BURST, len(providers)))
                connection.execute(change, [{"provider": provider, "number": number} for provider in chosen])
            CURRENT_REQUEST.set(None)

        return changed


@contextlib.contextmanager
def on_postgresql() -> Iterator[tuple[str, Pids]]:
    """Yield the URL of an empty database, and the processes of its server."""
    with running_postgresql() as server:
        url = server.database("scaling")
        with psycopg.connect(url) as connection:
            (directory,) = connection.execute("SHOW data_directory").fetchone() or ()
        yield url, postmaster(directory)


@contextlib.contextmanager
def on_mariadb() -> Iterator[tuple[str, Pids]]:
    """Yield the same for MariaDB."""
    with running_mariadb() as server:
        url = server.database("scaling")
        with server.cursor("scaling") as cursor:
            cursor.execute("SELECT @@pid_file")
            (pid_file,) = cursor.fetchone() or ()
        pid = int(Path(pid_file).read_text())
        yield url, lambda: with_children(pid)


def row(cloud: str, url: str, database_pids: Pids) -> str:
    """Return the row of a cloud, on an empty database."""
    settings = DatabaseSettings(connection=url, sync_on_startup=True, max_pool_size=16, max_overflow=48)
    app = create_app(Settings(database=settings, auth_strategy="noauth2"))
    database = app.extensions["placement"].database
    with database.writer.begin() as connection:
        rows = write_cloud(connection, cloud)
    put_in_order(database)  # as if it had been written over time
    with database.writer.begin() as connection:
        connection.execute(text(ANALYZE[database.dialect])).close()
    new_host = iter(range(10**6, 10**7))

    def add_host(_number: int) -> None:
        with database.writer.begin() as connection:
            rows.add_tree(numa(next(new_host)))
            insert_rows(connection, rows)

    worker, begun = Worker(app, database_pids), time.perf_counter()
    worker.find()
    first_s = time.perf_counter() - begun
    cells = [
        worker.cost(worker.find),
        worker.cost(worker.find, after=add_host),
        worker.cost(worker.find, after=worker.burst(RESTOCK)),
        worker.cost(worker.find, after=worker.burst(USE)),
        worker.cost(lambda: worker.find(limit=1000)),
        worker.cost(worker.claim),
        worker.cost(worker.claim_together, calls=TOGETHER),
    ]
    database.dispose()
    resident_mb = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    return f"| {cloud} | {first_s:.2f} | {' | '.join(cells)} | {resident_mb:.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--nested", action="store_true", help="hosts with two NUMA nodes each")
    parser.add_argument("--mariadb", action="store_true", help="on MariaDB instead of PostgreSQL")
    options = parser.parse_args()
    spare_the_collector()
    print(f"{floor()}\n\n{HEADER}", flush=True)
    for hosts in options.hosts:
        with on_mariadb() if options.mariadb else on_postgresql() as (url, database_pids):
            print(row(f"{'numa' if options.nested else 'flat'}-{hosts}", url, database_pids), flush=True)


if __name__ == "__main__":
    main()

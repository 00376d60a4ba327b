"""What keeping the index costs a claim: ``python -m tests.bench.keeping`` prints it for both ways to claim.

Two servers in this process share a PostgreSQL database of flat hosts. One keeps its orders and texts current; the other
believes from some moment on that no tree changes any more, and does all else alike. They claim in turn, and what was
claimed is given back in between, so both find the same hosts. The journal, which both write, is not part of it.
"""

import argparse
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg
from flask import Flask
from sqlalchemy import text

from placement.services.tree_history import Moment, TreeHistories, TreeHistory
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction
from tests.bench.bulk import FLAVOR, SMALL, flat_host
from tests.bench.loading import insert_rows, rows_for
from tests.bench.meters import CpuMeter, spent_ms, with_children
from tests.bench.planner import HEADERS, OWNER, made
from tests.postgresql import running_postgresql

HOSTS, PAIRS, CLAIMS = 10_000, 20, 10
ASKED = "resources=" + ",".join(f"{name}:{amount}" for name, amount in FLAVOR.items()) + "&limit=10"

Claim = Callable[[Flask], str]
"""Claims with a server, and returns the consumer."""


class Standstill(TreeHistory):
    """A history in which nothing happens after the first snapshot."""

    def moment(self, tx: Transaction) -> Moment | None:
        return Moment(self._states[-1].number) if self._states else super().moment(tx)


class Standstills(TreeHistories):
    """Such a history for each database."""

    def of(self, database: Database) -> TreeHistory:
        with self._lock:
            return self._by_database.setdefault(id(database), (database, Standstill()))[1]


def without_keeping(url: str) -> Flask:
    """Return a server that does not keep its orders and texts current."""
    app = made(url)
    app.extensions["placement"].orders.histories = Standstills()
    return app


def get_and_put(app: Flask) -> str:
    client, consumer = app.test_client(), str(uuid.uuid4())
    found = client.get(f"/allocation_candidates?{ASKED}", headers=HEADERS).json["allocation_requests"]
    answer = client.put(f"/allocations/{consumer}", json={**found[0], **OWNER}, headers=HEADERS)
    assert answer.status_code == 204, answer.text
    return consumer


def post(app: Flask) -> str:
    consumer = str(uuid.uuid4())
    body = {**SMALL, "consumer": {"uuid": consumer, **OWNER}}
    answer = app.test_client().post("/planner/v1/claims", json=body, headers=HEADERS)
    assert answer.status_code == 201, answer.text
    return consumer


class Pairs:
    """Claims by two servers in turn.

    Args:
        servers: that which keeps the index, and that which does not.
        database: the CPU time of PostgreSQL.
    """

    def __init__(self, servers: tuple[Flask, Flask], database: CpuMeter) -> None:
        self._servers = servers
        self._database = database

    def cell(self, claim: Claim) -> str:
        """Return the medians for a claim with and without keeping, and what keeping adds, with its quartiles."""
        for server in self._servers * 3:
            self._cpu_ms(server, claim)
        pairs = []
        for number in range(PAIRS):
            order = self._servers if number % 2 else self._servers[::-1]
            spent = {id(server): self._cpu_ms(server, claim) for server in order}
            pairs.append([spent[id(server)] for server in self._servers])
        kept, not_kept = (statistics.median(side) for side in zip(*pairs, strict=True))
        added = [100 * (one - other) / other for one, other in pairs]
        low, middle, high = statistics.quantiles(added, n=4)
        return f"{kept:.2f} | {not_kept:.2f} | {middle:+.1f} % ({low:+.1f} to {high:+.1f})"

    def _cpu_ms(self, server: Flask, claim: Claim) -> float:
        """Return the CPU time of a claim, the database's part included, and give back what was claimed."""
        before, begun = self._database.read(), time.process_time()
        consumers = [claim(server) for _ in range(CLAIMS)]
        spent = (time.process_time() - begun) * 1000 + spent_ms(before, self._database.read())
        for consumer in consumers:
            server.test_client().delete(f"/allocations/{consumer}", headers=HEADERS)
        return spent / CLAIMS


def rows(hosts: int) -> list[str]:
    with running_postgresql() as postgresql:
        url = postgresql.database("keeping")
        servers = (made(url), without_keeping(url))
        writer = servers[0].extensions["placement"].database.writer
        with writer.begin() as connection:
            stored = rows_for(connection)
            for number in range(hosts):
                stored.add_tree(flat_host(f"h{number}"))
            insert_rows(connection, stored)
        with writer.begin() as connection:
            connection.execute(text("ANALYZE"))
        with psycopg.connect(url) as plain:
            found = plain.execute("SHOW data_directory").fetchone()
        assert found is not None
        postmaster = int((Path(found[0]) / "postmaster.pid").read_text().split()[0])
        pairs = Pairs(servers, CpuMeter(lambda: with_children(postmaster)))
        cells = [
            f"| {name} | {pairs.cell(claim)} |" for name, claim in {"GET + PUT": get_and_put, "POST": post}.items()
        ]
        for server in servers:
            server.extensions["placement"].database.dispose()
    return cells


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", type=int, nargs="?", default=HOSTS)
    print("| claim by | kept, ms | not kept, ms | keeping adds |\n| --- | --- | --- | --- |")
    for line in rows(parser.parse_args().hosts):
        print(line, flush=True)

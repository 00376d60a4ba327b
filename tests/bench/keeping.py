"""Measures what maintaining the index costs a claim: ``python -m tests.bench.keeping`` prints it for two ways to claim.

The servers run in this process and share a PostgreSQL database of flat hosts. The first reads from the journal which
trees have changed, and updates its orders itself. For the second, the benchmark does the same with the same code
between claims, off the clock. So both have the same orders and read the changed hosts again, which any correct answer
requires. They claim in turn, once each, so with each claim the first server follows two, one of its own and one of the
other's, like one of two workers. What the first learns in the statement that reads the journal, the second asks in one
of its own, as a server without a journal does. Writing the journal, which both do, is not included. A third server has
no index and sums up all hosts, which shows what the index saves.

The cost is the median of the differences between the two claims of a turn, with its 95 % confidence interval: single
claims vary far more than the cost itself. A second table shows what it takes to follow one claim, and a thousand hosts
that change at once.
"""

import argparse
import math
import statistics
import time
import uuid
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path

import psycopg
from flask import Flask
from sqlalchemy import text

from placement.candidates.key_order import KeyOrder
from placement.candidates.ranking import TreeScores
from placement.services.cloud_cache import CloudCache
from placement.services.tree_history import Moment, TreeHistories, TreeHistory
from placement.store.connection.database import Database
from placement.store.connection.prepared import PreparedScalars, Values
from placement.store.connection.unit_of_work import Transaction, reads
from placement.tuning import spare_the_collector
from tests.bench.bulk import FLAVOR, SMALL, flat_host
from tests.bench.bursts import BURST, BURSTS, RESERVE, USE, burst
from tests.bench.floor import floor
from tests.bench.loading import insert_rows, rows_for
from tests.bench.meters import CpuMeter, spent_ms, with_children
from tests.bench.planner import HEADERS, OWNER, made
from tests.postgresql import running_postgresql

HOSTS, TURNS, WARMING, WITHOUT = 10_000, 500, 30, 15
ASKED = "resources=" + ",".join(f"{name}:{amount}" for name, amount in FLAVOR.items()) + "&limit=10"


BURSTS_OF = {"inventories changed": RESERVE, "hosts claimed from": USE}

Claim = Callable[[Flask], None]


class ToldHistory(TreeHistory):
    """A history that reads the journal only on demand, and assumes that nothing has changed since."""

    def moment(self, tx: Transaction) -> Moment | None:
        return Moment(self._states[-1].number) if self._states else self.look(tx)

    def look(self, tx: Transaction) -> Moment | None:
        """Read the position of a snapshot."""
        return super().moment(tx)

    def read_along(self, tx: Transaction, scalars: PreparedScalars, values: Values) -> None:
        return None


class ToldHistories(TreeHistories):
    """The one such history of a server with one database."""

    def __init__(self) -> None:
        super().__init__()
        self.only = ToldHistory()

    def of(self, database: Database) -> TreeHistory:
        return self.only


class ToldOrders(CloudCache):
    """Orders that are updated on demand."""

    def __init__(self, told: ToldHistories) -> None:
        super().__init__(histories=told)
        self._told = told.only
        self._asked: dict[Hashable, tuple[TreeScores, Sequence[str]]] = {}

    def order_at(self, tx: Transaction, moment: Moment, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder:
        self._asked[scores.signature, *found_by] = scores, found_by
        return super().order_at(tx, moment, scores, found_by)

    def catch_up(self, tx: Transaction) -> None:
        """Update everything."""
        moment = self._told.look(tx)
        assert moment is not None
        for scores, found_by in [*self._asked.values()]:
            super().order_at(tx, moment, scores, found_by)


class NoHistory(TreeHistory):
    """The history of a database without a journal."""

    def moment(self, tx: Transaction) -> Moment | None:
        return None

    def read_along(self, tx: Transaction, scalars: PreparedScalars, values: Values) -> None:
        return None


class NoHistories(TreeHistories):
    """Such a history for each database."""

    def of(self, database: Database) -> TreeHistory:
        return NoHistory()


def with_orders(url: str, cache: CloudCache) -> Flask:
    """Return a server that uses these orders."""
    app = made(url)
    object.__setattr__(app.extensions["placement"], "cloud_cache", cache)
    return app


def get_and_put(app: Flask) -> None:
    client, consumer = app.test_client(), str(uuid.uuid4())
    first = client.get(f"/allocation_candidates?{ASKED}", headers=HEADERS).json["allocation_requests"][0]
    answer = client.put(f"/allocations/{consumer}", json={**first, **OWNER}, headers=HEADERS)
    assert answer.status_code == 204, answer.text


def post(app: Flask) -> None:
    consumer = str(uuid.uuid4())
    body = {**SMALL, "consumer": {"uuid": consumer, **OWNER}}
    answer = app.test_client().post("/planner/v1/claims", json=body, headers=HEADERS)
    assert answer.status_code == 201, answer.text


class Turns:
    """Claims by servers in turn.

    Args:
        servers: the one that maintains its index, the one whose index is updated for it, the one without.
        told: the orders of the second.
        database: the CPU time of PostgreSQL.
    """

    def __init__(self, servers: Sequence[Flask], told: ToldOrders, database: CpuMeter) -> None:
        self._servers = servers
        self._catch_up = partial(reads(told.catch_up), servers[1].extensions["placement"].database)
        self._database = database

    def cells(self, claim: Claim) -> str:
        """Return the medians for a claim by each server, and what keeping adds, with its interval."""
        keeping, being_told, without_index = self._servers
        turns = [self._turn([keeping, being_told], claim, number) for number in range(TURNS + WARMING)][WARMING:]
        kept, told = (statistics.median(side) for side in zip(*turns, strict=True))
        low, added, high = median_within([100 * (one - other) / told for one, other in turns])
        without = statistics.median([self._turn([without_index], claim, number)[0] for number in range(WITHOUT)])
        return f"{kept:.2f} | {told:.2f} | {added:+.1f} % ({low:+.1f} to {high:+.1f}) | {without:.1f}"

    def _turn(self, servers: Sequence[Flask], claim: Claim, number: int) -> list[float]:
        """Return the CPU time of a claim by each server."""
        spent = dict[int, float]()
        for at in range(len(servers)) if number % 2 else reversed(range(len(servers))):
            self._catch_up()
            spent[at] = self._cpu_ms(partial(claim, servers[at]))
        return [spent[at] for at in range(len(servers))]

    def following(self, change: Callable[[int], None]) -> str:
        """Return the median of what it takes to follow a change, in a transaction of its own."""
        spent = []
        for number in range(BURSTS + 1):
            change(number)
            spent.append(self._cpu_ms(self._catch_up))
        return f"{statistics.median(spent[1:]):.2f}"

    def _cpu_ms(self, work: Callable[[], object]) -> float:
        """Return the CPU time of this process and of the database."""
        before, begun = self._database.read(), time.process_time()
        work()
        return (time.process_time() - begun) * 1000 + spent_ms(before, self._database.read())


def median_within(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of a sample, between the bounds of its 95 % confidence interval."""
    in_order, middle = sorted(values), len(values) / 2
    reach = 0.98 * math.sqrt(len(values))
    return in_order[math.floor(middle - reach)], statistics.median(values), in_order[math.ceil(middle + reach) - 1]


def tables(hosts: int) -> list[str]:
    """Return the lines of both tables."""
    with running_postgresql() as postgresql:
        url, told = postgresql.database("keeping"), ToldHistories()
        cache = ToldOrders(told)
        servers = (made(url), with_orders(url, cache), with_orders(url, CloudCache(histories=NoHistories())))
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
        turns = Turns(servers, cache, CpuMeter(lambda: with_children(postmaster)))
        of_queries = turns.cells(get_and_put)
        changes = {"a claim": lambda _number: get_and_put(servers[0])}
        changes |= {f"{BURST:,} {name}": partial(burst, servers[0], change) for name, change in BURSTS_OF.items()}
        # Only one order has been requested so far; the claims below request another.
        followed = {name: turns.following(change) for name, change in changes.items()}
        of_planner = turns.cells(post)
        for server in servers:
            server.extensions["placement"].database.dispose()
    return [
        "| claim by | kept, ms | updated outside, ms | keeping adds | without an index, ms |",
        "| --- | --- | --- | --- | --- |",
        f"| GET + PUT | {of_queries} |",
        f"| POST | {of_planner} |",
        "",
        "| change | to follow it, ms |",
        "| --- | --- |",
        *[f"| {name} | {spent} |" for name, spent in followed.items()],
        "",
        str(floor()),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", type=int, nargs="?", default=HOSTS)
    spare_the_collector()
    print("\n".join(tables(parser.parse_args().hosts)))

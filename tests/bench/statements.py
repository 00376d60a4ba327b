"""The least that the database has to do: plain statements, through the driver alone."""

import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import psycopg

from tests.bench.cases import Place
from tests.bench.cluster import Cluster
from tests.bench.meters import CpuMeter, spent_ms

REPEATS = 40

USED = (
    "LEFT JOIN provider_usages u ON u.resource_provider_id = i.resource_provider_id"
    " AND u.resource_class_id = i.resource_class_id"
)
SUMMED = (
    "LEFT JOIN (SELECT resource_provider_id, resource_class_id, sum(used) AS used FROM allocations"
    " GROUP BY 1, 2) u USING (resource_provider_id, resource_class_id)"
)
ROOM = "(i.total - i.reserved) * i.allocation_ratio - coalesce(u.used, 0) >= 1"

STATEMENTS = {
    "select 1": "SELECT 1",
    "one provider by uuid": "SELECT * FROM resource_providers WHERE uuid = (SELECT uuid FROM resource_providers"
    " WHERE name = 'host500')",
    "room for a VCPU, usage kept": f"SELECT i.resource_provider_id FROM inventories i {USED}"
    f" WHERE i.resource_class_id = 0 AND {ROOM}",
    "room for a VCPU, usage summed": f"SELECT i.resource_provider_id FROM inventories i {SUMMED}"
    f" WHERE i.resource_class_id = 0 AND {ROOM}",
    "every provider, inventory and usage": "SELECT p.id, p.uuid, p.root_provider_id, p.parent_provider_id,"
    f" i.resource_class_id, i.total, i.reserved, i.allocation_ratio, u.used"
    f" FROM resource_providers p JOIN inventories i ON i.resource_provider_id = p.id {USED}",
    "every trait of every provider": "SELECT resource_provider_id, trait_id FROM resource_provider_traits",
}

PLACES = (Place("flat-1000"), Place("nested-1000"), Place("nested-10000"))


@dataclass(frozen=True, slots=True)
class StatementRow:
    """The cost of a statement: the client's CPU time, the database's, and the wall time."""

    place: Place
    name: str
    rows: int
    client_ms: float
    database_ms: float
    latency_ms: float


def measure_statements(cluster: Cluster, places: Iterable[Place]) -> Iterator[StatementRow]:
    """Measure each statement on adopted copies of clouds."""
    for place in places:
        with cluster.copy(place.cloud, fill=place.fill, adopted=True) as database:
            meter = CpuMeter(lambda database=database: cluster.client_pids(database))  # type: ignore[misc]
            with psycopg.connect(cluster.url(database), autocommit=True) as connection:
                for name, statement in STATEMENTS.items():
                    yield _measured(place, name, _Statement(connection, statement, meter))


@dataclass(frozen=True, slots=True)
class _Statement:
    connection: "psycopg.Connection[tuple[object, ...]]"
    text: str
    meter: CpuMeter

    def run(self) -> int:
        """Run it and return the number of rows."""
        return len(self.connection.execute(self.text.encode(), prepare=True).fetchall())


def _measured(place: Place, name: str, statement: _Statement) -> StatementRow:
    rows = statement.run()
    before, client = statement.meter.read(), time.process_time()
    latencies = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        statement.run()
        latencies.append((time.perf_counter() - begun) * 1000)
    client_ms = (time.process_time() - client) * 1000 / REPEATS
    database_ms = spent_ms(before, statement.meter.read()) / REPEATS
    return StatementRow(place, name, rows, client_ms, database_ms, statistics.median(latencies))

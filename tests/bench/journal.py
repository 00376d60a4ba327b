"""The cost of the journal: the same claims with and without it, and the space for a million of them.

REFERENCE_PYTHON=... python -m tests.bench.journal     two minutes; the figures are in docs/performance.md
"""

import argparse
import contextlib
from collections.abc import Iterator, Sequence

import psycopg

from placement.store.connection.engines import engine_for
from placement.store.lifecycle import schema
from placement.store.lifecycle.opening import normalised
from tests.bench.claims import measure_claims
from tests.bench.cluster import running_cluster
from tests.bench.queries import SIMPLE
from tests.bench.rows import provider_uuid
from tests.bench.sampling import Spread, in_turn, ratios, spread
from tests.bench.sides import Side, Starter
from tests.bench.work import ClaimAndFree, FirstCandidate, PlannerClaim, claim_on_flat

CLOUD = "flat-1000"
CLIENTS = 4
TIMEOUT_S = 60
ROWS_OF_A_CLAIM = "SELECT count(*) FROM placement_journal"
SIZE = "SELECT pg_total_relation_size('placement_journal')"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=40, help="of one client")
    parser.add_argument("--pairs", type=int, default=15, help="of four clients")
    parser.add_argument("--seconds", type=float, default=3.0)
    chosen = parser.parse_args()
    with running_cluster(None, print) as cluster, _both(Starter(cluster)) as (with_it, without):
        _print_alone((with_it, without), chosen.blocks)
        _print_together(with_it, without, chosen.pairs, chosen.seconds)
        _print_size(with_it)


@contextlib.contextmanager
def _both(starter: Starter) -> Iterator[tuple[Side, Side]]:
    with (
        starter.side("ours", CLOUD, fill=0.0, label="_journal") as first,
        starter.side("ours", CLOUD, fill=0.0, label="_none") as second,
    ):
        engine = engine_for(normalised(str(second.running.database_url)))
        schema.upgrade(engine, keep_journal=False)
        engine.dispose()
        yield first, second


def _print_alone(sides: Sequence[Side], blocks: int) -> None:
    """Print the cost for one client, alternating between the sides request by request."""
    flat = claim_on_flat("host7")
    for name, work in (
        ("PUT + DELETE", ClaimAndFree(flat)),
        ("GET + PUT", FirstCandidate(SIMPLE)),
        ("POST /planner/v1/claims", PlannerClaim(flat[provider_uuid("host7")])),
    ):
        with_it, without = in_turn(sides, work, blocks=blocks)
        print(f"{name}: {with_it.median('cpu_ms'):.2f} ms with, {without.median('cpu_ms'):.2f} ms without:", end=" ")
        more = [with_it.median(part) - without.median(part) for part in ("server_ms", "database_ms")]
        print(f"{_told(ratios(with_it, without))}; server {more[0]:+.2f} ms, database {more[1]:+.2f} ms")


def _told(found: Spread) -> str:
    return f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f})"


def _print_together(with_it: Side, without: Side, pairs: int, seconds: float) -> None:
    """Print the cost for several clients that GET candidates and PUT one."""
    found = measure_claims([with_it, without], SIMPLE, clients=CLIENTS, pairs=pairs, seconds=seconds)
    first, second = found
    each = [mine.cpu_ms / other.cpu_ms for mine, other in zip(first.samples, second.samples, strict=True)]
    cpu = [series.median("cpu_ms") for series in found]
    print(f"GET + PUT, {CLIENTS} clients: {cpu[0]:.2f} ms with, {cpu[1]:.2f} ms without: {_told(spread(each))}")


def _print_size(side: Side) -> None:
    """Print the space that a million claims would need, each made and given back."""
    with psycopg.connect(str(side.running.database_url), autocommit=True) as connection:
        connection.execute("TRUNCATE placement_journal")
        caller = side.caller(timeout_s=TIMEOUT_S)
        work = ClaimAndFree(claim_on_flat("host7"))
        for _ in range(1000):
            work.do(caller)
        ((rows,), (size,)) = (connection.execute(query).fetchone() or () for query in (ROWS_OF_A_CLAIM, SIZE))
        print(f"a claim and its end: {rows / 1000} rows; a million of them: {size / 1e6:.2f} GB")


if __name__ == "__main__":
    main()

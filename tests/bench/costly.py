"""Finds the requests that cost most: random ones, many as hard as a client can make them, on a cloud of every shape.

``python -m tests.bench.costly --requests 500`` prints the slowest requests, by CPU time of server and database and by
wall time, for investigation. It exits with 1 if any took more than its answer is worth: a second of CPU, three where
the planner composes up to twenty groups, or 150 ms per megabyte; on a slow machine accordingly more (``meters.py``).

The seed changes every day unless given, and on odd days usage differs from host to host, so that hardly two are alike.
``--cloud pooled-5000`` sends requests that are hard where much is shared. The server runs in this process, tuned like a
production server; the database is PostgreSQL.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from flask.testing import FlaskClient
from sqlalchemy import text

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from placement.tuning import tune_process
from tests.bench.clouds import AGGREGATES
from tests.bench.hard_requests import claim, on_pools, plan
from tests.bench.meters import Pids, floor, metered, postmaster
from tests.bench.rows import provider_uuid, write_cloud
from tests.postgresql import running_postgresql

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
AMOUNTS = {
    "VCPU": (1, 8, 20, 32),
    "MEMORY_MB": (1, 60000),
    "DISK_GB": (1, 10, 900),
    "PGPU": (1,),
    "SRIOV_NET_VF": (1, 2, 5),
}
TRAITS = ("HW_NUMA_ROOT", "CUSTOM_GPU_A100", "HW_NIC_SRIOV", "COMPUTE_VOLUME_MULTI_ATTACH", "CUSTOM_HW_PCIE_SWITCH")
GROUPS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)
SHOWN = 12
MAX_CPU_S = 1.0
"""On clouds of up to ``HOSTS`` hosts; beyond that it grows with the number of hosts."""
MAX_CPU_S_OF_COMPOSING = 3.0
"""The same for plans and claims of the planner: nobody sends such groups, so no code speeds them up."""
COMPOSING = ("/planner/v1/candidates", "/planner/v1/claims")
HOSTS = 5_000
LARGE = 5_000_000
"""In bytes; a larger answer may take longer."""
MAX_CPU_S_PER_BYTE = 0.150 / 1_000_000
SECONDS_A_DAY = 86_400


class Cost(NamedTuple):
    """The cost of a request in seconds; ``cpu`` of server and database together."""

    cpu: float
    clock: float
    status: int
    size: int
    target: str

    def is_too_much(self, hosts: int, slowness: float) -> bool:
        """Tell whether it took more CPU time than an answer of its size is worth.

        Args:
            hosts: how many hosts the cloud has.
            slowness: how many times slower the machine is than those for which the bars are meant.
        """
        is_composed = self.target.startswith(COMPOSING)
        most = (MAX_CPU_S_OF_COMPOSING if is_composed else MAX_CPU_S) * max(1.0, hosts / HOSTS)
        return self.cpu / slowness > (most if self.size <= LARGE else max(most, self.size * MAX_CPU_S_PER_BYTE))


def candidates(choice: random.Random) -> str:
    """Return a query for candidates; half of the queries have identical groups, which have the most placements."""
    suffixes = [f"_G{number}" for number in range(choice.choice(GROUPS))]
    parts = [*_wishes(choice)] if not suffixes or choice.random() < 0.4 else []
    alike, first = choice.random() < 0.5, [*_wishes(choice)]
    tied = []
    for suffix in suffixes:
        if choice.random() < 0.05:
            parts.append(f"required{suffix}={choice.choice(TRAITS)}")
            tied.append(suffix)
        else:
            wishes = first if alike else [*_wishes(choice)]
            parts += [wish.replace("=", f"{suffix}=", 1) for wish in wishes]
    sets = [{suffix, *_some(choice, suffixes)} for suffix in tied]
    sets += [{*_some(choice, suffixes)} for _ in range(choice.choice((0, 0, 1, 2)))]
    parts += ["same_subtree=" + ",".join(sorted(of_set)) for of_set in sets if of_set]
    parts.append(f"group_policy={choice.choice(('none', 'isolate'))}")
    return "&".join(parts + ([f"limit={choice.choice((1, 10, 1000))}"] if choice.random() < 0.7 else []))


def _some(choice: random.Random, suffixes: list[str]) -> list[str]:
    return choice.sample(suffixes, min(len(suffixes), choice.randint(2, 6)))


def _wishes(choice: random.Random) -> Iterator[str]:
    names = choice.sample(list(AMOUNTS), choice.choice((1, 1, 2)))
    yield "resources=" + ",".join(f"{name}:{choice.choice(AMOUNTS[name])}" for name in names)
    if choice.random() < 0.25:
        yield f"required={choice.choice(('', '!'))}{choice.choice(TRAITS)}"


def providers(choice: random.Random) -> str:
    """Return filters for the list of providers, several combined."""
    aggregates = [provider_uuid(f"aggregate{number}") for number in range(AGGREGATES)]
    parts = [*_wishes(choice)]
    for key, values in (("required", list(TRAITS)), ("member_of", aggregates)):
        for _ in range(choice.choice((0, 1, 2))):
            first, second = choice.sample(values, 2)
            parts.append(f"{key}={choice.choice((first, f'!{first}', f'in:{first},{second}'))}")
    return "&".join(parts)


Asked = str | dict[str, Any]
"""A query string, or the body of a POST."""

Route = tuple[str, Callable[[random.Random], Asked]]
"""A path, and what makes up a request to it."""

ROUTES: tuple[Route, ...] = (
    ("/allocation_candidates", candidates),
    ("/planner/v1/explain", candidates),
    ("/resource_providers", providers),
    ("/planner/v1/inventory", providers),
    ("/planner/v1/candidates", plan),
    ("/planner/v1/claims", claim),
)
ON_POOLS: tuple[Route, ...] = (("/allocation_candidates", on_pools), ("/planner/v1/explain", on_pools))


def cost_of(client: FlaskClient, path: str, wanted: Asked, database: Pids) -> Cost:
    """Send a request, and return its cost."""
    with metered({"database": database}) as spent:
        cpu, clock = time.process_time(), time.monotonic()
        if isinstance(wanted, str):
            target = f"{path}?{wanted}"
            answer = client.get(target, headers=HEADERS)
        else:
            target = f"{path} {json.dumps(wanted)}"
            answer = client.post(path, json=wanted, headers=HEADERS)
        cpu, clock = time.process_time() - cpu, time.monotonic() - clock
    return Cost(cpu + spent["database"] / 1000, clock, answer.status_code, len(answer.data), target)


def too_costly(client: FlaskClient, route: Route, seeds: Sequence[int], *, database: Pids, hosts: int) -> int:
    """Send a route's requests, print the slowest, and return how many cost more than they may."""
    path, drawn = route
    before = floor()
    costs = [cost_of(client, path, drawn(random.Random(seed)), database) for seed in seeds]
    slowness = max(before.slowness, floor().slowness)
    statuses = dict(Counter(cost.status for cost in costs))
    print(f"\n{path}: {statuses}, {slowness:.2f} times the usual floor; CPU s, clock s, status, bytes")
    for cost in sorted(costs, key=lambda cost: -max(cost.cpu, cost.clock))[:SHOWN]:
        mark = "!" if cost.is_too_much(hosts, slowness) else " "
        print(f"{mark}{cost.cpu:6.2f} {cost.clock:6.2f} {cost.status} {cost.size:9} {cost.target}", flush=True)
    return sum(cost.is_too_much(hosts, slowness) for cost in costs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time() // SECONDS_A_DAY), help="of the first request")
    parser.add_argument("--requests", type=int, default=300, help="of each route")
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--cloud", help="a name of tests/bench/clouds.py; mixed-HOSTS unless given")
    parser.add_argument("--routes", nargs="+", default=["/"], help="only those whose path has any of these in it")
    parser.add_argument("--fill", type=float, default=0.5, help="how much of everything is in use")
    uneven = argparse.BooleanOptionalAction
    parser.add_argument("--uneven", action=uneven, help="each host has something else in use; by the seed unless given")
    return parser.parse_args()


def main() -> None:
    """Send requests to every route, and judge them."""
    options = _options()
    name = options.cloud or f"mixed-{options.hosts}"
    is_uneven = options.seed % 2 == 1 if options.uneven is None else options.uneven
    print(f"{name}, {'uneven' if is_uneven else 'even'}, seed {options.seed}")
    tune_process()
    too_much, hosts = 0, int(name.rpartition("-")[2])
    routes = ON_POOLS if name.startswith("pooled") else ROUTES
    with running_postgresql() as postgresql:
        settings = DatabaseSettings(connection=postgresql.database("costly"), sync_on_startup=True)
        app = create_app(Settings(database=settings, auth_strategy="noauth2"))
        with app.extensions["placement"].database.writer.begin() as connection:
            write_cloud(connection, name, fill=options.fill, is_uneven=is_uneven)
            connection.execute(text("ANALYZE"))
            database = postmaster(connection.scalars(text("SHOW data_directory")).one())
        for route in [route for route in routes if any(part in route[0] for part in options.routes)]:
            seeds = range(options.seed, options.seed + options.requests)
            too_much += too_costly(app.test_client(), route, seeds, database=database, hosts=hosts)
    print(f"\n{too_much} took more than their answers are worth")
    sys.exit(bool(too_much))


if __name__ == "__main__":
    main()

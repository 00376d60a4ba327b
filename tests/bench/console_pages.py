"""The cost of every page of the console: its size and the server's CPU time, in process, on SQLite.

python -m tests.bench.console_pages     two minutes; the figures are in docs/performance.md
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from urllib.parse import quote

from tests.api.conftest import planner_of, serving
from tests.bench.meters import cpu_ms
from tests.bench.rows import provider_uuid
from tests.databases import migrate
from tests.ui.racks import fill_racks, host_name, kinds
from tests.ui.visitor import Visitor

FLAVORS = {
    "g1.large": "resources=VCPU:8,MEMORY_MB:65536,PGPU:1",
    "c1.small": "resources=VCPU:2,MEMORY_MB:4096",
    "d1.large": "resources=DISK_GB:500",
}
REQUEST = quote(FLAVORS["g1.large"])
HOST = provider_uuid(host_name(3, in_rack=25))
PATHS = {
    "overview": "/ui/",
    "map": "/ui/map",
    "map with a request": f"/ui/map?query={REQUEST}",
    "map with a request and a project": f"/ui/map?query={REQUEST}&project=blue",
    "map of one zone with a request": f"/ui/map?query={REQUEST}&group=eu-west-1a",
    "map's card of a host": f"/ui/map/host?query={REQUEST}&host={HOST[:18]}",
    "providers": "/ui/providers",
    "providers by words": "/ui/providers?q=b7+numa",
    "providers, fullest first": "/ui/providers?sort=fullest",
    "providers that changed": "/ui/providers?changed=day&sort=changed",
    "providers of a zone with room": "/ui/providers?resources=PGPU:1&group=zone:eu-west-1b&disabled=no&full=no",
    "host": f"/ui/providers/{HOST}",
    "maintenance": f"/ui/providers/{HOST}/maintenance",
    "consumers": "/ui/consumers",
    "consumers of a project": "/ui/consumers?project=blue",
    "project": "/ui/project?id=blue",
    "search": "/ui/search?q=gpu-b07-03",
    "candidates": f"/ui/request?query={REQUEST}",
    "explanation": "/ui/request?query=resources=VCPU:97",
    "fair shares": "/ui/fair-share",
}
HOSTS = 10_000
TIMES = 5


def measure(hosts: int, directory: Path) -> None:
    """Create a cloud and print the cost of each page of it."""
    url = f"sqlite:///{directory / f'{hosts}.sqlite'}"
    migrate(url)
    planner = planner_of(f"{{aggregates: {kinds(5, -(-hosts // 25))}, flavors: {FLAVORS}}}")
    with serving(url, planner=planner) as api:
        fill_racks(api.database, hosts)
        visitor = Visitor(api.app)
        print("| page | size | CPU of the server |\n|---|---|---|")
        for name, path in PATHS.items():
            visitor.open(path)
            spent_ms = cpu_ms(partial(visitor.open, path), repeats=TIMES)
            print(f"| {name} | {len(visitor.open(path).data) / 1000:.0f} KB | {spent_ms / 1000:.2f} s |", flush=True)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as directory:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS, Path(directory))


if __name__ == "__main__":
    main()

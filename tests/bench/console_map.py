"""The cost of the console's map: page size and server CPU time, in process, on SQLite.

python -m tests.bench.console_map     a minute; the figures are in docs/performance.md
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from placement.app import create_app
from placement.settings import DatabaseSettings, PlannerSettings, Settings
from tests.databases import migrate
from tests.ui.racks import fill_racks, kinds
from tests.ui.visitor import Visitor

REQUEST = quote("resources=VCPU:8,MEMORY_MB:65536,PGPU:1")
PATHS = {
    "coloured by VCPU": "/ui/map",
    "with a request": f"/ui/map?query={REQUEST}",
    "with a request and a project": f"/ui/map?query={REQUEST}&project=blue",
    "one zone, with a request": f"/ui/map?query={REQUEST}&group=eu-west-1a",
}
SIZES = (1_000, 10_000)
TIMES = 5


def measured(ask: Callable[[], bytes]) -> tuple[int, float]:
    """Return the size of an answer and the median CPU seconds it takes."""
    spent = []
    for _ in range(TIMES):
        before = time.process_time()
        size = len(ask())
        spent.append(time.process_time() - before)
    return size, statistics.median(spent)


def measure(hosts: int, directory: Path) -> None:
    """Create a cloud and print the cost of each of its maps."""
    url = f"sqlite:///{directory / f'{hosts}.sqlite'}"
    migrate(url)
    planner = PlannerSettings(aggregates=kinds(5, -(-hosts // 25)))
    app = create_app(Settings(DatabaseSettings(connection=url), auth_strategy="noauth2", planner=planner))
    database = app.extensions["placement"].database
    fill_racks(database, hosts)
    visitor = Visitor(app)
    for name, path in PATHS.items():
        visitor.open(path)
        size, cpu = measured(lambda path=path: visitor.open(path).data)  # type: ignore[misc]
        print(f"{hosts:,} hosts, {name}: {size / 1000:.0f} KB, {cpu:.2f} s of CPU", flush=True)
    database.dispose()


def main() -> None:
    """Measure and print."""
    sizes = [int(text) for text in sys.argv[1:]] or SIZES
    with tempfile.TemporaryDirectory() as directory:
        for hosts in sizes:
            measure(hosts, Path(directory))


if __name__ == "__main__":
    main()

"""The cost of headroom for requests with rules about places: 50 counted at once, in process, on SQLite.

python -m tests.bench.headroom_of_rules     a minute; the figures are in docs/headroom.md

Exits with 1 if a cloud takes more than a second of CPU.
"""

import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import insert, text

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from placement.store.connection.database import Database
from placement.store.tables import traits
from placement.tuning import spare_the_collector
from tests.bench.clouds import AGGREGATES, CUSTOM_TRAITS, cloud
from tests.bench.loading import insert_rows, make_owners, rows_for
from tests.bench.sides import HEADERS
from tests.databases import migrate

REQUESTS = 50
FILLS = 10
"""The number of usage levels among the hosts."""
TIMES = 5
BAR_S = 1.0

Body = dict[str, Any]


def flat_request(number: int) -> Body:
    """Return two groups on the same host, or one that needs a host to itself."""
    small = {"resources": {"VCPU": 1 + number % 16, "MEMORY_MB": 1024 * (1 + number)}}
    disk = {"resources": {"DISK_GB": 10 * (1 + number % 7)}}
    rules: Body = (
        {"exclusive": [{"groups": ["_A"], "level": "device"}]}
        if number % 5 == 4
        else {"within": [{"groups": ["_A", "_B"], "level": "COMPUTE_VOLUME_MULTI_ATTACH"}]}
    )
    return {"groups": {"_A": small, "_B": disk}, "group_policy": "none", **rules}


def gpu_request(number: int) -> Body:
    """Return GPUs in one NUMA node, with CPUs, beside NICs, or beside a NIC that nobody else uses."""
    cores = {"resources": {"VCPU": 1 + number % 8, "MEMORY_MB": 4096 * (1 + number % 8)}}
    gpus = {"resources": {"PGPU": 1}, "count": 1 + number // 4 % 4}
    nic = {"resources": {"SRIOV_NET_VF": 1 + number % 3}}
    disk = {"resources": {"DISK_GB": 10 + number}}
    return [
        {"groups": {"": disk, "_G": gpus}, "within": [{"groups": ["_G"], "level": "numa"}]},
        {"groups": {"_C": cores, "_G": gpus}, "within": [{"groups": ["_C", "_G"], "level": "numa"}]},
        {
            "groups": {"": disk, "_G": gpus, "_N": nic},
            "affinity": [{"groups": ["_G", "_N"], "primary": "_G", "level": "numa"}],
        },
        {"groups": {"_G": gpus, "_N": nic}, "exclusive": [{"groups": ["_N"], "level": "device"}]},
    ][number % 4]


CLOUDS: dict[str, Callable[[int], Body]] = {"flat-10000": flat_request, "numa-gpu-1000": gpu_request}


def load(database: Database, name: str) -> None:
    """Write a cloud whose hosts are used to different degrees, from empty to nearly full."""
    with database.writer.begin() as connection:
        connection.execute(insert(traits), [{"name": trait} for trait in CUSTOM_TRAITS])
        make_owners(connection, aggregates=[f"aggregate{number}" for number in range(AGGREGATES)])
        rows = rows_for(connection)
        for number, root in enumerate(cloud(name)):
            rows.fill = number % FILLS / FILLS
            rows.add_tree(root)
        insert_rows(connection, rows)
        connection.execute(text("ANALYZE"))


def counted(client: FlaskClient, body: Body) -> float:
    """Return the CPU seconds of one POST."""
    gc.collect()
    begun = time.process_time()
    answer = client.post("/planner/v1/headroom", json=body, headers=HEADERS)
    spent = time.process_time() - begun
    assert answer.status_code == 200, answer.get_json()
    return spent


def measure(name: str, directory: Path) -> float:
    """Return the median CPU seconds for 50 requests in a cloud."""
    url = f"sqlite:///{directory / name}.sqlite"
    migrate(url)
    app = create_app(Settings(database=DatabaseSettings(connection=url), auth_strategy="noauth2"))
    database = app.extensions["placement"].database
    load(database, name)
    client = app.test_client()
    body = {"requests": {str(number): CLOUDS[name](number) for number in range(REQUESTS)}}
    counted(client, body)
    spent = statistics.median([counted(client, body) for _ in range(TIMES)])
    print(f"{name}: {REQUESTS} requests with rules counted in {spent:.2f} s of CPU", flush=True)
    database.dispose()
    return spent


def main() -> None:
    """Measure and print."""
    spare_the_collector()
    with tempfile.TemporaryDirectory() as directory:
        spent = [measure(name, Path(directory)) for name in sys.argv[1:] or CLOUDS]
    sys.exit(any(one > BAR_S for one in spent))


if __name__ == "__main__":
    main()

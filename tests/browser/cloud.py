"""The cloud that the browser shows: that of ``placement demo``, with more claims, and queues for fair shares."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from placement.cli.demo import tell, uuid_of
from placement.store.connection.database import Database
from tests import servers
from tests.bench.clouds import AGGREGATES
from tests.bench.rows import provider_uuid
from tests.clouds import allocate
from tests.databases import migrate, open_database
from tests.http_calls import HttpCalls
from tests.ui.long_names import load_long_named
from tests.ui.racks import fill_racks, kinds

PLANNER = f"""\
aggregates:
  rack:
    r1: {uuid_of("rack1")}
profiles:
  spread: {{fit: {{resources: {{VCPU: {{type: LeastAllocated}}}}}}}}
  pack: {{fit: {{resources: {{VCPU: {{type: MostAllocated}}}}}}}}
  default: {{fit: {{}}, compactness: {{}}}}
fair_share:
  classes: [VCPU, MEMORY_MB, PGPU]
  tree:
    cloud/research: {{weight: 3}}
    cloud/research/vision: {{weight: 2, projects: [vision]}}
    cloud/research/speech: {{projects: [speech]}}
    cloud/products: {{weight: 2, projects: [web, shop]}}
  default: cloud/others
"""

CLAIMS = (
    ("vision", "compute1-numa1", {"VCPU": 10, "MEMORY_MB": 40960}),
    ("vision", "compute2-gpu0", {"PGPU": 1}),
    ("speech", "compute2-numa0", {"VCPU": 12, "MEMORY_MB": 32768}),
    ("web", "compute3", {"VCPU": 6, "MEMORY_MB": 8192}),
    ("web", "storage1", {"DISK_GB": 4200}),
)
"""Project, provider and allocated amounts, after the walk of the demo."""


@contextlib.contextmanager
def served_cloud(directory: Path) -> Iterator[str]:
    """Serve the cloud from a directory and yield the URL of the server."""
    (directory / "planner.yaml").write_text(PLANNER, encoding="utf-8")
    with servers.serving(directory, servers.default_sections(f"sqlite:///{directory / 'placement.sqlite'}")) as url:
        tell(url, lambda _line: None)
        call = HttpCalls(url)
        for project, provider, resources in CLAIMS:
            allocate(call, uuid_of(provider), resources, project=project, user=project)
        yield url


FLAVORS = {"g1.large": "resources=VCPU:8,MEMORY_MB:65536,PGPU:1"}


@contextlib.contextmanager
def served_racks(directory: Path, *, hosts: int = 1000, sparse: bool = False) -> Iterator[str]:
    """Serve a cloud of hosts with domain names in racks and zones, and yield the URL of the server."""
    planner = {"aggregates": kinds(5, -(-hosts // 25)), "flavors": FLAVORS}
    with served(directory, planner, lambda database: fill_racks(database, hosts, sparse=sparse)) as url:
        yield url


@contextlib.contextmanager
def served_long_names(directory: Path, *, hosts: int = 100) -> Iterator[str]:
    """Serve a cloud of several kinds of hosts with domain names, some of them hostile; yield its URL."""
    zones = {f"eu-west-1{'abcdefgh'[zone]}": [provider_uuid(f"aggregate{zone}")] for zone in range(AGGREGATES)}
    planner = {
        "aggregates": {"zone": zones},
        "flavors": FLAVORS,
        "fair_share": {
            "classes": ["VCPU", "PGPU"],
            "tree": {"cloud/research": {"projects": ["research/vision"]}, "cloud/products": {"projects": ["blue"]}},
            "default": "cloud/others",
        },
    }
    with served(directory, planner, lambda database: load_long_named(database, hosts)) as url:
        yield url


@contextlib.contextmanager
def served(directory: Path, planner: dict[str, Any], fill: Callable[[Database], None]) -> Iterator[str]:
    connection = f"sqlite:///{directory / 'placement.sqlite'}"
    (directory / "planner.yaml").write_text(yaml.safe_dump(planner, sort_keys=False), encoding="utf-8")
    migrate(connection)
    database = open_database(connection)
    fill(database)
    database.dispose()
    with servers.serving(directory, servers.default_sections(connection)) as url:
        yield url


def is_required() -> bool:
    """Return whether a browser is mandatory: if these tests were selected by name."""
    return os.environ.get("PLACEMENT_BROWSER") == "required"

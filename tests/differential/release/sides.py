"""The server under test and the release, each on a database of its own with the same rows.

RELEASE_PYTHON names the python of an environment with the release in it; without it, one is created once below .tox
from this repository's history.
"""

import contextlib
import functools
import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests import servers
from tests.differential.release.clouds import Rows, store
from tests.differential.sides import Pair, Side, Starter
from tests.environments import kept_environment

RELEASE = "2da37ef6f18a92eb230eaf20572ab66df90dba4a"
ROOT = Path(__file__).parents[3]
PLANNER_FILE = Path(__file__).with_name("planner.yaml")

VARIANTS: Mapping[str, tuple[str, servers.Sections]] = {
    "spread": ("spread", {}),
    "ai": ("ai", {}),
    "strict": ("strict", {"fair_share": {"enforce": "plain", "consumer_types": "INSTANCE"}}),
    "shares": ("shares", {}),
    "unfollowed": ("ai", {"journal": {"enabled": "False"}}),
    "unranked": ("spread", {"ranking": {"enabled": "False"}}),
    "depth-first": ("ai", {"placement": {"allocation_candidates_generation_strategy": "depth-first"}}),
}
"""By name: the profile that orders candidates, and options of placement.conf."""

# Everything that a write may change; the ids of providers decide ties.
CONTENTS = {
    "resource_providers": "SELECT id, uuid, generation, parent_provider_id, root_provider_id FROM resource_providers",
    "inventories": "SELECT resource_provider_id, resource_class_id, total, reserved FROM inventories",
    "allocations": "SELECT resource_provider_id, resource_class_id, consumer_id, used FROM allocations",
    "consumers": "SELECT uuid, generation FROM consumers",
}


@functools.cache
def release() -> servers.Installation | None:
    """Return the environment of the release, creating it if necessary; None if this history does not have it."""
    named = os.environ.get("RELEASE_PYTHON")
    if not named and subprocess.run(["git", "cat-file", "-e", RELEASE], cwd=ROOT, check=False).returncode:
        return None
    requirement = f"placement-server @ git+{ROOT.as_uri()}@{RELEASE}"
    python = Path(named) if named else kept_environment(f"release-{RELEASE[:8]}", requirement)
    return servers.Installation(python, servers.plain_environment("PYTHONPATH", "PYTHONHOME"))


@contextlib.contextmanager
def running_pair(kind: str, variant: str) -> Iterator[Pair]:
    """Start the release and this server on new databases of a kind, with a variant of the configuration."""
    installed = release()
    assert installed is not None, f"git does not have {RELEASE}"
    with contextlib.ExitStack() as stack:
        starter, executor = Starter(stack), stack.enter_context(ThreadPoolExecutor(1))
        sides = [_started(starter, kind, variant, each) for each in (installed, servers.this_project())]
        yield Pair(*sides, executor)


def _started(starter: Starter, kind: str, variant: str, installation: servers.Installation) -> Side:
    directory = starter.directory()
    url = starter.new_database(kind, directory)
    profile, options = VARIANTS[variant]
    (directory / "planner.yaml").write_text(PLANNER_FILE.read_text().replace("DEFAULT", profile))
    sections = {**servers.default_sections(url), **options}
    address = starter.stack.enter_context(servers.serving(directory, sections, installation, threads=1))
    return Side(f"{kind}, {variant}", address, url, starter.opened(url))


def contents(side: Side) -> dict[str, list[tuple[object, ...]]]:
    """Return what is in the tables."""
    return {name: sorted(side.rows(query)) for name, query in CONTENTS.items()}


def reset(pair: Pair, rows: Rows) -> None:
    """Replace both clouds."""
    for side in (pair.reference, pair.subject):
        side.reset()
        store(side.database, rows)

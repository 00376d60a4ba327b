"""The server under test and the release, each on a database of its own with the same rows.

RELEASE_PYTHON names the python of an environment with the release in it; without it, one is created once below .tox
from this repository's history.
"""

import contextlib
import functools
import http.client
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import text

from placement.store.connection.database import Database
from tests import servers
from tests.databases import open_database
from tests.differential.answers import Answer
from tests.differential.release.clouds import Rows, store
from tests.differential.requests import Request
from tests.empty_database import empty_database
from tests.environments import kept_environment
from tests.memory import memory
from tests.postgresql import PostgreSQL, running_postgresql

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

GENERATIONS = {
    "provider": text("SELECT generation FROM resource_providers WHERE uuid = :uuid"),
    "consumer": text("SELECT generation FROM consumers WHERE uuid = :uuid"),
}
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


@dataclass(slots=True)
class Side:
    """A running server that nobody else writes to, one connection to it, and its database."""

    connection: http.client.HTTPConnection
    database_url: str
    database: Database

    def ask(self, request: Request) -> Answer:
        """Send a request and return the answer."""
        self.connection.request(request.method, request.target(), request.content(), request.all_headers())
        response = self.connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())

    def generation(self, kind: str, uuid: str) -> int | None:
        """Return the current generation of a provider or consumer."""
        with self.database.engine.connect() as connection:
            return connection.execute(GENERATIONS[kind], {"uuid": uuid}).scalar()

    def contents(self) -> dict[str, list[tuple[object, ...]]]:
        """Return what is in the tables."""
        with self.database.engine.connect() as connection:
            return {name: sorted(map(tuple, connection.execute(text(query)))) for name, query in CONTENTS.items()}


@dataclass(slots=True)
class Pair:
    """The release, and the server that must give the same answers."""

    name: str
    release: Side
    subject: Side
    executor: Executor

    def reset(self, rows: Rows) -> None:
        """Replace both clouds."""
        for side in (self.release, self.subject):
            empty_database(side.database_url)
            store(side.database, rows)
            side.connection.close()  # The server may have closed it meanwhile; the next request opens another.

    def ask(self, request: Request) -> tuple[Answer, Answer]:
        """Send a request to both at once and return (the release's answer, the subject's answer)."""
        waiting = self.executor.submit(self.release.ask, request)
        given = self.subject.ask(request)
        return waiting.result(), given


class Pairs:
    """Starts pairs, one at a time."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._postgresql: PostgreSQL | None = None
        self._count = 0

    @contextlib.contextmanager
    def started(self, kind: str, variant: str) -> Iterator[Pair]:
        """Start both servers on new databases of a kind, with a variant of the configuration."""
        installed = release()
        assert installed is not None, f"git does not have {RELEASE}"
        with contextlib.ExitStack() as stack:
            start = functools.partial(self._started_side, stack, kind, variant)
            oracle, subject = start(installed), start(servers.this_project())
            yield Pair(f"{kind}, {variant}", oracle, subject, stack.enter_context(ThreadPoolExecutor(1)))

    def _started_side(
        self, stack: contextlib.ExitStack, kind: str, variant: str, installation: servers.Installation
    ) -> Side:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="release-", dir=memory())))
        url = self._new_database(kind, directory)
        profile, options = VARIANTS[variant]
        (directory / "planner.yaml").write_text(PLANNER_FILE.read_text().replace("DEFAULT", profile))
        sections = servers.migrating({**servers.default_sections(url), **options})
        servers.write_configuration(directory, sections)
        address = stack.enter_context(servers.running_server(installation, directory, threads=1))
        database = open_database(url)
        stack.callback(database.dispose)
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=300)
        stack.callback(connection.close)
        return Side(connection, url, database)

    def _new_database(self, kind: str, directory: Path) -> str:
        if kind == "sqlite":
            return f"sqlite:///{directory / 'placement.sqlite'}"
        if self._postgresql is None:
            self._postgresql = self._stack.enter_context(running_postgresql())
        self._count += 1
        return self._postgresql.database(f"side_{self._count}")

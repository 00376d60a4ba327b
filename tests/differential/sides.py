"""The two sides of a comparison: a server process and its database, to which nobody else writes."""

import contextlib
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text

from placement.store.connection.database import Database
from tests import reference, servers
from tests.databases import open_database
from tests.differential.requests import Request
from tests.empty_database import empty_database
from tests.http_calls import Answer, exchange
from tests.mariadb import running_mariadb
from tests.memory import memory
from tests.postgresql import running_postgresql

DATABASES = ("sqlite", "postgresql")
MENDED = ("--pythonpath", str(Path(__file__).parent / "altered"))
TIMEOUT_S = 300

GENERATIONS = {
    "provider": "SELECT generation FROM resource_providers WHERE uuid = :uuid",
    "consumer": "SELECT generation FROM consumers WHERE uuid = :uuid",
}


@dataclass(frozen=True, slots=True)
class Side:
    """A running server."""

    name: str
    url: str
    database_url: str
    database: Database

    def reset(self) -> None:
        """Empty the cloud."""
        empty_database(self.database_url)

    def ask(self, request: Request) -> Answer:
        """Send a request and return the answer."""
        headers, content = request.all_headers(), request.content()
        return exchange(
            self.url, request.method, request.target(), headers=headers, content=content, timeout_s=TIMEOUT_S
        )

    def rows(self, query: str, **values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query to the database."""
        with self.database.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query), values)]

    def generation(self, kind: str, uuid: str) -> int | None:
        """Return the current generation of a provider or consumer."""
        return next((generation for (generation,) in self.rows(GENERATIONS[kind], uuid=uuid)), None)

    def forget_hidden_consumers(self) -> int:
        """Delete consumers without allocations, which the reference leaves; return how many there were."""
        unused = "DELETE FROM consumers WHERE uuid NOT IN (SELECT consumer_id FROM allocations)"
        with self.database.engine.begin() as connection:
            return connection.execute(text(unused)).rowcount

    def names(self, table: str) -> set[str]:
        """Return the existing traits or resource classes."""
        return {name for (name,) in self.rows(f"SELECT name FROM {table}")}

    def roots(self) -> dict[str, str]:
        """Return the root of each provider's tree, by uuid: before 1.29, answers with candidates do not contain it."""
        pairs = "SELECT p.uuid, root.uuid FROM resource_providers p, resource_providers root"
        return dict(self.rows(f"{pairs} WHERE root.id = p.root_provider_id"))


@dataclass(frozen=True, slots=True)
class Pair:
    """The side that is right, and the server that must give the same answers."""

    reference: Side
    subject: Side
    executor: Executor

    def reset(self) -> None:
        """Empty both clouds."""
        self.reference.reset()
        self.subject.reset()

    def ask(self, request: Request) -> tuple[Answer, Answer]:
        """Send a request to both at once and return (the expected answer, the subject's answer)."""
        waiting = self.executor.submit(self.reference.ask, request)
        given = self.subject.ask(request)
        return waiting.result(), given


class Starter:
    """Starts sides, each in a directory and on a database of its own, until a stack is closed."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.stack = stack
        self._servers: dict[str, Any] = {}
        self._count = 0

    def directory(self) -> Path:
        """Return a new directory, in memory if there is room."""
        return Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="differential-", dir=memory())))

    def new_database(self, kind: str, directory: Path) -> str:
        """Return the URL of a new database of a kind."""
        if kind == "sqlite":
            return f"sqlite:///{directory / 'placement.sqlite'}"
        if kind not in self._servers:
            server = running_mariadb() if kind == "mariadb" else running_postgresql()
            self._servers[kind] = self.stack.enter_context(server)
        self._count += 1
        url: str = self._servers[kind].database(f"side_{self._count}")
        return url

    def opened(self, url: str) -> Database:
        """Return a database, open as long as the servers run."""
        database = open_database(url)
        self.stack.callback(database.dispose)
        return database

    def side(self, name: str, kind: str, installation: servers.Installation, **options: Any) -> Side:
        """Start an installation's server on a new database of a kind.

        Args:
            name: what the side is called.
            kind: of the database.
            installation: the environment of the server.
            options: as for ``servers.serving``; ``sections`` makes the configuration of a URL, ``planner`` is a planner
                file.
        """
        directory, sections = self.directory(), options.pop("sections", servers.default_sections)
        url = self.new_database(kind, directory)
        if planner := options.pop("planner", ""):
            (directory / "planner.yaml").write_text(planner)
        server = servers.serving(directory, sections(url), installation, **options)
        return Side(name, self.stack.enter_context(server), url, self.opened(url))


@contextlib.contextmanager
def reference_pair(kind: str) -> Iterator[Pair]:
    """Start the reference on SQLite, and this server on a kind of database.

    The reference has one thread, because that is how defects are mended for one request.
    """
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(1) as executor:
        starter = Starter(stack)
        mended = {"application": "mended_reference:application", "options": MENDED, "threads": 1}
        mended |= {"sections": reference.configuration}
        expected = starter.side("reference", "sqlite", reference.installation(), **mended)
        yield Pair(expected, starter.side(kind, kind, servers.this_project()), executor)

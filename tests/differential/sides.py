"""The two sides of a comparison: a server process and its database."""

import contextlib
import dataclasses
import http.client
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests import reference, servers
from tests.differential.answers import Answer
from tests.differential.requests import Request
from tests.empty_database import empty_database, sqlite_path
from tests.mariadb import running_mariadb
from tests.postgresql import running_postgresql

DATABASES = ("sqlite", "postgresql")
ALTERED = ("--pythonpath", str(Path(__file__).parent / "altered"))

GENERATIONS = {
    "provider": "SELECT generation FROM resource_providers WHERE uuid = ?",
    "consumer": "SELECT generation FROM consumers WHERE uuid = ?",
}


@dataclass(frozen=True, slots=True)
class Side:
    """A running server that nobody else writes to."""

    name: str
    url: str
    database_url: str

    def reset(self) -> None:
        """Empty the cloud."""
        empty_database(self.database_url)

    def ask(self, request: Request) -> Answer:
        """Send a request and return the answer."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=120)
        try:
            connection.request(request.method, request.target(), request.content(), request.all_headers())
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class ReferenceSide(Side):
    """The reference, with access to its database: to read generations, and to delete what it should not have left."""

    mended_url: str = ""
    """A second server on the same database, with defects mended."""

    def ask_mended(self, request: Request) -> Answer:
        """Ask the reference without the defects listed in the request's x-mend."""
        return Side("mended", self.mended_url, self.database_url).ask(request)

    def generation(self, kind: str, uuid: str) -> int | None:
        """Return the current generation of a provider or consumer."""
        with self._database() as database:
            row = database.execute(GENERATIONS[kind], [uuid]).fetchone()
        return row and int(row[0])

    def forget_hidden_consumers(self) -> int:
        """Delete consumers without allocations, and return how many there were."""
        with self._database() as database:
            unused = "DELETE FROM consumers WHERE uuid NOT IN (SELECT consumer_id FROM allocations)"
            count: int = database.execute(unused).rowcount
            database.commit()
        return count

    def names(self, table: str) -> set[str]:
        """Return the existing traits or resource classes."""
        with self._database() as database:
            return {name for (name,) in database.execute(f"SELECT name FROM {table}")}

    def roots(self) -> dict[str, str]:
        """Return the root of each provider's tree, by uuid: before 1.29, answers with candidates do not contain it."""
        pairs = "SELECT one.uuid, root.uuid FROM resource_providers one, resource_providers root"
        with self._database() as database:
            return dict(database.execute(f"{pairs} WHERE root.id = one.root_provider_id"))

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(sqlite_path(self.database_url), timeout=30)) as connection:
            yield connection


@dataclass(frozen=True, slots=True)
class Pair:
    """The reference and the server that must give the same answers."""

    reference: ReferenceSide
    subject: Side
    executor: Executor

    @property
    def is_self_check(self) -> bool:
        """Whether the reference is compared with itself."""
        return isinstance(self.subject, ReferenceSide)

    def reset(self) -> None:
        """Empty both clouds."""
        self.reference.reset()
        self.subject.reset()

    def forget_hidden_consumers(self) -> int:
        """Delete what the reference leaves behind, also if it takes the subject's place to check the harness."""
        counts = [
            side.forget_hidden_consumers() for side in (self.reference, self.subject) if isinstance(side, ReferenceSide)
        ]
        return counts[0]

    def ask(self, request: Request) -> tuple[Answer, Answer]:
        """Send a request to both at once and return (the reference's answer, the subject's answer)."""
        waiting = self.executor.submit(self.reference.ask, request)
        given = self.subject.ask(request)
        return waiting.result(), given


@contextlib.contextmanager
def started_oracle(directory: Path) -> Iterator[ReferenceSide]:
    """Run the reference, and another one with defects mended."""
    with started_reference(directory) as side:
        mended = {"application": "mended_reference:application", "options": ALTERED}
        with servers.running_server(reference.installation(), directory, threads=1, **mended) as url:
            yield dataclasses.replace(side, mended_url=url)


@contextlib.contextmanager
def started_reference(directory: Path, *, alteration: str | None = None) -> Iterator[ReferenceSide]:
    """Run the reference on SQLite with one thread, unchanged or with one of the alterations."""
    database_url = f"sqlite:///{directory / 'reference.sqlite'}"
    installation, application = reference.installation(), "sparing_reference:application"
    if alteration:
        variables = {**installation.variables, "ALTERATION": alteration}
        installation = dataclasses.replace(installation, variables=variables)
        application = "altered_reference:application"
    servers.write_configuration(directory, servers.migrating(reference.configuration(database_url)))
    with servers.running_server(installation, directory, threads=1, application=application, options=ALTERED) as url:
        yield ReferenceSide("reference", url, database_url)


@contextlib.contextmanager
def started_project(directory: Path, database_url: str) -> Iterator[Side]:
    """Run this project's server on a database."""
    installation = servers.this_project()
    servers.write_configuration(directory, servers.migrating(servers.default_sections(database_url)))
    with servers.running_server(installation, directory) as url:
        yield Side(database_url.partition(":")[0], url, database_url)


@contextlib.contextmanager
def compared_with_reference(oracle: ReferenceSide, directory: Path, *, alteration: str | None = None) -> Iterator[Pair]:
    """Compare the reference with a second one."""
    with started_reference(directory, alteration=alteration) as subject, ThreadPoolExecutor(1) as executor:
        yield Pair(oracle, subject, executor)


@contextlib.contextmanager
def compared_projects(databases: Sequence[str]) -> Iterator[list[Pair]]:
    """Compare the reference with this server on each database; yield a pair for each."""
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(1))
        oracle = stack.enter_context(started_oracle(_directory(stack)))
        pairs = []
        for name in databases:
            directory = _directory(stack)
            database_url = _new_database(stack, name, directory)
            pairs.append(Pair(oracle, stack.enter_context(started_project(directory, database_url)), executor))
        yield pairs


def _new_database(stack: contextlib.ExitStack, name: str, directory: Path) -> str:
    if name == "sqlite":
        return f"sqlite:///{directory / 'placement.sqlite'}"
    server = running_mariadb() if name == "mariadb" else running_postgresql()
    return stack.enter_context(server).database("differential")


def _directory(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))

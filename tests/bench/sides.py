"""The servers that are measured, ours and openstack-placement, each on its own copy of a cloud in one PostgreSQL."""

import contextlib
import http.client
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import psycopg

from placement.store.connection.engines import engine_for
from placement.store.lifecycle import schema
from placement.store.lifecycle.opening import normalised
from tests import reference, servers
from tests.bench.meters import Pids
from tests.bench.rows import write_cloud
from tests.postgresql import PostgreSQL, running_postgresql

WORKERS = 2
FULL = 0.6
SETTINGS = (
    # Parallel workers' CPU time would be lost: they have exited by the time it is read.
    "max_parallel_workers_per_gather = 0",
    # Would run at any time and distort one side's figures; every copy is vacuumed and analysed when it is made.
    "autovacuum = off",
)
HEADERS = {
    "x-auth-token": "admin",
    "accept": "application/json",
    "content-type": "application/json",
    "openstack-api-version": "placement 1.39",
}
PROJECT, NEW = "bench", "new-"
"""The project of consumers that requests create, and the beginning of names of such providers."""

_MADE = f"SELECT c.uuid FROM consumers c JOIN projects p ON p.id = c.project_id WHERE p.external_id = '{PROJECT}'"
_PROVIDERS = f"SELECT id FROM resource_providers WHERE name LIKE '{NEW}%'"
FORGET = (
    f"DELETE FROM allocations WHERE consumer_id IN ({_MADE})",
    f"DELETE FROM consumers WHERE uuid IN ({_MADE})",
    f"DELETE FROM inventories WHERE resource_provider_id IN ({_PROVIDERS})",
    f"DELETE FROM resource_provider_traits WHERE resource_provider_id IN ({_PROVIDERS})",
    f"DELETE FROM resource_providers WHERE id IN ({_PROVIDERS})",
)


class Order(Enum):
    """The order in which our server returns candidates."""

    NONE = "unordered"
    BEST_FIRST = "best first"
    SPREAD = "best first, equals at random"


@dataclass(frozen=True, slots=True)
class Server:
    """A server to be measured: which one, its cloud and how full it is, and how it is configured.

    With one thread a process serves one request at a time, so that no cost of another request is counted.
    """

    cloud: str
    fill: float = FULL
    is_reference: bool = False
    order: Order = Order.NONE
    keeps_journal: bool = True
    threads: int = 1

    def __str__(self) -> str:
        """Return it in words."""
        fill = f"{self.fill:.0%} full" if self.fill else "empty"
        order = f", {self.order.value}" if self.order is not Order.NONE else ""
        return f"{self.cloud}, {fill}{order}{'' if self.keeps_journal else ', no journal'}"


class TookTooLong(Exception):
    """There was no answer in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a body."""

    status: int
    body: bytes

    def document(self) -> Any:
        """Return the decoded body."""
        return orjson.loads(self.body) if self.body else None


class Caller:
    """Sends requests to one server, one at a time; each client has its own."""

    def __init__(self, base_url: str, *, timeout_s: float) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=timeout_s)

    def __call__(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request and return the answer."""
        content = None if body is None else orjson.dumps(body)
        try:
            self._connection.request(method, path, content, HEADERS)
            response = self._connection.getresponse()
            return Answer(response.status, response.read())
        except TimeoutError as error:
            self.close()
            raise TookTooLong from error

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        self._connection.close()


class Side:
    """A server that is started on first use, and its database."""

    def __init__(self, start: Callable[[], servers.Served], database_url: str, database_pids: Pids) -> None:
        self._start = start
        self._served: servers.Served | None = None
        self.database_url = database_url
        self._database_pids = database_pids

    @property
    def served(self) -> servers.Served:
        """The running server."""
        self._served = self._served or self._start()
        return self._served

    @property
    def processes(self) -> Mapping[str, Pids]:
        """The processes of the server, and those that serve it in the database."""
        return {"server": lambda: self.served.pids, "database": self._database_pids}

    def caller(self, *, timeout_s: float) -> Caller:
        """Return a caller for this server."""
        return Caller(self.served.url, timeout_s=timeout_s)

    def stop(self) -> None:
        """Stop the server, whatever it is doing; the next use starts it again."""
        if self._served is not None:
            self._served.kill()
        self._served = None

    def forget(self, *, is_vacuumed: bool) -> None:
        """Delete what requests have created; vacuuming makes the server's next statements plan anew."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            for statement in (*FORGET, "VACUUM ANALYZE") if is_vacuumed else FORGET:
                connection.execute(statement)


class Cluster:
    """A running PostgreSQL with the clouds requested so far, as templates.

    A cloud is written into a database that openstack-placement has created; ours adopts a copy.
    """

    def __init__(self, postgresql: PostgreSQL) -> None:
        self._postgresql = postgresql
        self._clouds: dict[tuple[str, float], str] = {}
        self._adopted: dict[tuple[str, bool], str] = {}
        self._numbers = count(1)

    @contextlib.contextmanager
    def side(self, server: Server) -> Iterator[Side]:
        """Yield a server on a copy of its cloud, which is dropped afterwards."""
        name = self._new_name()
        url = self._postgresql.database(name, template=self._template(server))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        with tempfile.TemporaryDirectory(prefix="bench-") as path:
            side = Side(lambda: _started(server, url, Path(path)), url, lambda: self._postgresql.client_pids(name))
            try:
                yield side
            finally:
                side.stop()
                self._postgresql.drop(name)

    def _template(self, server: Server) -> str:
        place = server.cloud, server.fill
        if place not in self._clouds:
            self._clouds[place] = self._new_name()
            url = self._postgresql.database(self._clouds[place], template=self._base)
            self._write(url, server)
        if server.is_reference:
            return self._clouds[place]
        key = self._clouds[place], server.keeps_journal
        if key not in self._adopted:
            self._adopted[key] = self._new_name()
            engine = engine_for(normalised(self._postgresql.database(self._adopted[key], template=key[0])))
            schema.upgrade(engine, keep_journal=server.keeps_journal)
            engine.dispose()
        return self._adopted[key]

    @cached_property
    def _base(self) -> str:
        """A database with openstack-placement's tables, and with the standard names, which it writes when it starts."""
        url = self._postgresql.database("base")
        with tempfile.TemporaryDirectory(prefix="bench-") as path:
            servers.write_configuration(Path(path), reference.configuration(url))
            servers.placement_manage(reference.installation(), Path(path), "db", "sync")
            with servers.running_server(reference.installation(), Path(path)):
                return "base"

    def _write(self, url: str, server: Server) -> None:
        engine = engine_for(normalised(url))
        with engine.begin() as connection:
            write_cloud(connection, server.cloud, fill=server.fill)
        engine.dispose()

    def _new_name(self) -> str:
        return f"bench_{next(self._numbers)}"


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Run PostgreSQL as long as it is needed."""
    with running_postgresql(settings=SETTINGS, is_in_memory=False) as postgresql:
        yield Cluster(postgresql)


def _started(server: Server, url: str, directory: Path) -> servers.Served:
    installation = reference.installation() if server.is_reference else servers.this_project()
    servers.write_configuration(directory, reference.configuration(url) if server.is_reference else _ours(server, url))
    one_at_a_time = ("--worker-class", "sync") if server.threads == 1 else ()
    return servers.started_server(
        installation, directory, workers=WORKERS, threads=server.threads, options=one_at_a_time
    )


def _ours(server: Server, url: str) -> servers.Sections:
    """Return a configuration in which candidates are unordered, like those of openstack-placement, or in an order."""
    sections = servers.default_sections(url)
    sections["placement_database"] |= {"max_pool_size": "20", "max_overflow": "20"}
    return {
        **sections,
        "ranking": {"enabled": str(server.order is not Order.NONE)},
        "placement": {"randomize_allocation_candidates": str(server.order is Order.SPREAD)},
    }

"""The servers that are compared: how each is started, called and metered."""

import contextlib
import http.client
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from tests import reference, servers
from tests.bench import meters
from tests.bench.cluster import Cluster
from tests.bench.meters import CpuMeter

WORKERS = 2
# One request at a time in each process: no cost of a concurrent request is counted, and no polling by threads.
WORKER_CLASS = "sync"

HEADERS = {
    "x-auth-token": "admin",
    "accept": "application/json",
    "content-type": "application/json",
    "openstack-api-version": "placement 1.39",
}

SIDES = ("reference", "ours")
CHECKOUT = Path(__file__).parents[2]


class Order(Enum):
    """The order in which our server returns candidates."""

    NONE = "unordered"
    BEST_FIRST = "best first"
    SPREAD = "best first, equals at random"


class TookTooLong(Exception):
    """There was no answer in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and how long it took."""

    status: int
    body: bytes
    seconds: float

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
        begun = time.perf_counter()
        try:
            self._connection.request(method, path, content, HEADERS)
            response = self._connection.getresponse()
            answered = response.read()
        except TimeoutError as error:
            self.close()
            raise TookTooLong from error
        return Answer(response.status, answered, time.perf_counter() - begun)

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        self._connection.close()


class Side:
    """A running server; ``database`` is None for one that needs none."""

    def __init__(self, name: str, start: Callable[[], "contextlib.AbstractContextManager[Running]"]) -> None:
        self.name = name
        self._start = start
        self._stack = contextlib.ExitStack()
        self._running: Running | None = None

    @property
    def running(self) -> "Running":
        """The server, started on first use."""
        if self._running is None:
            self._running = self._stack.enter_context(self._start())
        return self._running

    def caller(self, *, timeout_s: float) -> Caller:
        """Return a caller for this server."""
        return Caller(self.running.url, timeout_s=timeout_s)

    def stop(self) -> None:
        """Stop the server, whatever it is doing; the next use starts it again."""
        self._running = None
        self._stack.close()


@dataclass(frozen=True, slots=True)
class Running:
    """A server's processes and those of its database."""

    url: str
    directory: Path
    server: CpuMeter
    database: CpuMeter
    database_url: str | None

    def forget_peak_memory(self) -> None:
        """Reset the workers' peak memory."""
        meters.forget_peak_memory(self.server.pids())

    def peak_memory_mib(self) -> float:
        """Return the highest peak memory of a worker."""
        return meters.peak_memory_mib(self.server.pids())


@dataclass(frozen=True, slots=True)
class Starter:
    """Starts servers on clouds."""

    cluster: Cluster

    @contextlib.contextmanager
    def side(self, name: str, cloud: str, *, fill: float, order: Order = Order.NONE, label: str = "") -> Iterator[Side]:
        """Yield the reference or ours on a copy of a cloud; a label distinguishes copies for the same order."""
        labelled = order.name.lower() + label
        with self.cluster.copy(cloud, fill=fill, adopted=name == "ours", label=labelled) as database:
            side = Side(name, lambda: self._server(name, database, order))
            try:
                yield side
            finally:
                side.stop()

    @contextlib.contextmanager
    def floor(self) -> Iterator[Side]:
        """Yield a bare Flask application that returns answers of any size."""
        side = Side("floor", _floor)
        try:
            yield side
        finally:
            side.stop()

    @contextlib.contextmanager
    def _server(self, name: str, database: str, order: Order) -> Iterator[Running]:
        url = self.cluster.url(database)
        sections = reference.configuration(url) if name == "reference" else _our_configuration(url, order)
        installation = reference.installation() if name == "reference" else servers.this_project()
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as path:
            directory = Path(path)
            servers.write_configuration(directory, sections)
            with _gunicorn(installation, directory) as base_url:
                database_meter = CpuMeter(lambda: self.cluster.client_pids(database))
                yield Running(base_url, directory, _server_meter(directory), database_meter, url)


def _our_configuration(url: str, order: Order) -> servers.Sections:
    """Return a configuration where candidates are unordered, like the reference's, or in one of our orders."""
    return {
        **servers.default_sections(url),
        "ranking": {"enabled": str(order is not Order.NONE)},
        "placement": {"randomize_allocation_candidates": str(order is Order.SPREAD)},
    }


@contextlib.contextmanager
def _floor() -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="bench-floor-") as path:
        directory = Path(path)
        application = ("tests.bench.floor_app:application", "--pythonpath", str(CHECKOUT))
        with _gunicorn(servers.this_project(), directory, *application) as base_url:
            yield Running(base_url, directory, _server_meter(directory), CpuMeter(lambda: ()), None)


@contextlib.contextmanager
def _gunicorn(
    installation: servers.Installation, directory: Path, application: str = servers.APPLICATION, *options: str
) -> Iterator[str]:
    chosen = ("--worker-class", WORKER_CLASS, "--pid", str(directory / "pid"), *options)
    with servers.running_server(
        installation, directory, workers=WORKERS, threads=1, application=application, options=chosen
    ) as base_url:
        yield base_url


def _server_meter(directory: Path) -> CpuMeter:
    return CpuMeter(lambda: meters.with_children(int((directory / "pid").read_text())))

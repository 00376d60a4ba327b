"""Servers and databases whose clocks jump: generations determine the order of events, not the time."""

import mmap
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import servers
from tests.claims import new_uuid
from tests.failover.galera import NODES, Programs, running_cluster
from tests.failover.replicas import running_directory, running_pair
from tests.servers import check_database, configured
from tests.survival.load import Crowd, check, prepared, send, wait_for
from tests.survival.mirrors import Mirrors

FARTHEST_S = 24 * 3600
JUMPS = 25
"""The number of jumps during each history."""


SOURCE = Path(__file__).with_name("jumping_clock.c")
OFFSET = struct.Struct("=q")


def compiled_library(directory: Path) -> Path:
    """Compile the library that intercepts a process's clock, or skip the test if there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (Debian: gcc, libc6-dev)")
    library = directory / "jumping_clock.so"
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return library


class Clock:
    """The time of day as seen by a process and its children."""

    def __init__(self, path: Path, library: Path) -> None:
        self._path = path
        self._library = library
        path.write_bytes(OFFSET.pack(0))
        with path.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), OFFSET.size)

    def jump(self, offset_s: int) -> None:
        """Set the offset from the machine's clock, in seconds; negative values are behind."""
        OFFSET.pack_into(self._offset, 0, offset_s)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables for starting a process."""
        return {"LD_PRELOAD": str(self._library), "JUMPING_CLOCK": str(self._path)}


def made_clocks(library: Path, count: int) -> list[Clock]:
    """Create some clocks beside the library."""
    files = [library.with_name(f"{new_uuid()}.offset") for _ in range(count)]
    return [Clock(file, library) for file in files]


@pytest.fixture
def library() -> Iterator[Path]:
    """The library that intercepts a process's clock, in a directory that the databases' users can read."""
    with running_directory() as directory:
        yield compiled_library(directory)


class Deployment(NamedTuple):
    """Servers and the nodes of their database, each with a separate clock."""

    urls: list[str]
    server_clocks: list[Clock]
    node_clocks: list[Clock]
    times: Callable[[], list[datetime]]
    """Returns the time of each node."""
    configuration: Path


@pytest.fixture
def on_postgresql(library: Path, tmp_path: Path) -> Iterator[Deployment]:
    """Three servers of a primary and its standby."""
    of_servers, of_nodes = made_clocks(library, 3), made_clocks(library, 2)
    with running_pair([clock.variables for clock in of_nodes]) as pair:
        directory = configured(tmp_path, pair.url(pair.primary, pair.standby))

        def times() -> list[datetime]:
            return [node.execute("SELECT clock_timestamp()")[0][0] for node in (pair.primary, pair.standby)]

        with servers.running_servers([directory] * 3, variables=[clock.variables for clock in of_servers]) as served:
            yield Deployment([server.url for server in served], of_servers, of_nodes, times, directory)


@pytest.fixture
def on_galera(library: Path, tmp_path: Path) -> Iterator[Deployment]:
    """A server at each of three nodes."""
    if missing := Programs().missing():
        pytest.skip(f"{missing} (Debian: mariadb-server, galera-4, rsync)")
    of_servers, of_nodes = made_clocks(library, NODES), made_clocks(library, NODES)
    with running_cluster(Programs(), [clock.variables for clock in of_nodes]) as nodes:
        nodes[0].query("CREATE DATABASE placement CHARACTER SET utf8mb4")
        directories = [configured(tmp_path / str(number), node.url("placement")) for number, node in enumerate(nodes)]

        def times() -> list[datetime]:
            return [node.query("SELECT UTC_TIMESTAMP()")[0][0].replace(tzinfo=UTC) for node in nodes]

        with servers.running_servers(directories, variables=[clock.variables for clock in of_servers]) as served:
            yield Deployment([server.url for server in served], of_servers, of_nodes, times, directories[0])


@pytest.fixture(params=["on_postgresql", "on_galera"])
def deployment(request: pytest.FixtureRequest) -> Deployment:
    found: Deployment = request.getfixturevalue(request.param)
    return found


def test_nothing_is_lost_or_made_up_while_clocks_jump(deployment: Deployment, is_long: bool) -> None:
    choice, clocks = random.Random(1), [*deployment.server_clocks, *deployment.node_clocks]
    for _ in range(1000 // JUMPS if is_long else 1):
        record = prepared(deployment.urls[0])
        with Mirrors(deployment.urls) as mirrors, Crowd(record, deployment.urls, seed=choice.randrange(10**6)):
            for _ in range(JUMPS):
                choice.choice(clocks).jump(choice.randint(-FARTHEST_S, FARTHEST_S))
                wait_for(record, 3, timeout_s=600)
        print("\n", dict(record.statuses), "acknowledged", len(record.acknowledged))
        assert record.statuses["broken"] == 0
        assert not any("503" in answer for answer in record.statuses), record.statuses
        check(record, deployment.urls[1])
        mirrors.check()
    check_database(deployment.configuration)


def test_each_server_and_each_node_goes_by_its_own_clock(deployment: Deployment) -> None:
    """Otherwise the test above would show nothing."""
    clocks = [*deployment.server_clocks, *deployment.node_clocks]
    hours = [5, -7, 11, 16, -20, 3][: len(clocks)]
    for clock, ahead in zip(clocks, hours, strict=True):
        clock.jump(3600 * ahead)
    told = [parsedate_to_datetime(send(url, "GET", "/").headers["date"]) for url in deployment.urls]
    told += deployment.times()
    now = datetime.now(UTC)
    assert [round((moment - now).total_seconds() / 3600) for moment in told] == hours

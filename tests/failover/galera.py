"""A Galera cluster of three MariaDB nodes on loopback, for experiments and for the tests.

    python -m tests.failover.galera [DIRECTORY]

starts one, prints a URL for each node and runs until Ctrl-C. It requires Debian's packages mariadb-server, galera-4 and
rsync. Where they are not installed, DIRECTORY may hold them unpacked::

    apt-get download mariadb-server mariadb-server-core mariadb-client-core galera-4 rsync libaio1 ...
    for package in *.deb; do dpkg -x $package DIRECTORY; done

The system's own MariaDB is not touched.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pymysql

from tests.servers import free_port, until

START_TIMEOUT_S = 180
NODES = 3
# The data is temporary, so nothing waits for a disk.
OPTIONS = (
    "--binlog-format=ROW", "--default-storage-engine=InnoDB", "--innodb-autoinc-lock-mode=2",
    "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--wsrep-on=ON",
    "--wsrep-sst-method=rsync", "--bind-address=127.0.0.1", "--skip-name-resolve",
)  # fmt: skip


class Programs:
    """Where the packages' files are: in the system, or unpacked in a directory."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self.server = root / "usr/sbin/mariadbd"
        self.provider = root / "usr/lib/galera/libgalera_smm.so"

    def missing(self) -> str | None:
        """Return a missing program, or None."""
        needed = [self.server, self.provider, self.root / "usr/bin/rsync"]
        return next((f"there is no {path}" for path in needed if not path.exists()), None)

    def environment(self) -> dict[str, str]:
        """Return the variables by which the programs find each other."""
        folders = [str(self.root / part) for part in ("usr/sbin", "usr/bin", "bin")]
        libraries = [str(self.root / part) for part in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
        here = {"PATH": ":".join([*folders, os.environ["PATH"]])}
        return {**os.environ, **here, **({"LD_LIBRARY_PATH": ":".join(libraries)} if self.root != Path("/") else {})}


class Node:
    """One node; ``variables`` are added to this process's environment."""

    def __init__(self, programs: Programs, directory: Path, variables: Mapping[str, str]) -> None:
        self._programs = programs
        self._variables = {**programs.environment(), **variables}
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self.group_port, self.transfer_port = free_port(), free_port(), free_port()

    def url(self, name: str) -> str:
        """Return the URL of a database as in a placement.conf."""
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{name}?charset=utf8mb4"

    def make(self) -> None:
        """Create its files."""
        self._directory.mkdir()
        if user := _account():
            shutil.chown(self._directory, user=user)
        command = [
            str(self._programs.root / "usr/bin/mariadb-install-db"), "--no-defaults",
            "--auth-root-authentication-method=normal", f"--basedir={self._programs.root / 'usr'}",
            f"--datadir={self._directory / 'data'}", "--skip-test-db",
        ]  # fmt: skip
        subprocess.run(
            command, user=_account(), cwd="/", env=self._programs.environment(), check=True, capture_output=True
        )

    def start(self, cluster: str, *, is_first: bool) -> None:
        """Start it and wait until it has everything the others have."""
        provider = f"base_port={self.group_port};ist.recv_addr=127.0.0.1:{free_port()};gcache.size=32M"
        command = [
            str(self._programs.server), "--no-defaults", *OPTIONS, f"--datadir={self._directory / 'data'}",
            f"--basedir={self._programs.root / 'usr'}", f"--socket={self._directory / 'socket'}",
            f"--port={self.port}", f"--pid-file={self._directory / 'pid'}", f"--tmpdir={self._directory}",
            f"--wsrep-provider={self._programs.provider}", f"--wsrep-provider-options={provider}",
            f"--wsrep-cluster-address={cluster}", "--wsrep-node-address=127.0.0.1",
            f"--wsrep-sst-receive-address=127.0.0.1:{self.transfer_port}",
            *(["--wsrep-new-cluster"] if is_first else []),
        ]  # fmt: skip
        # Run by root, the transfer by rsync is refused.
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command, user=_account(), cwd="/", env=self._variables, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_synced():
            text = (self._directory / "log").read_text(errors="replace")
            assert time.monotonic() < deadline, text[-3000:]
            assert self._process.poll() is None, text[-3000:]
            time.sleep(0.2)

    def _is_synced(self) -> bool:
        if b"ready for connections" not in (self._directory / "log").read_bytes():
            return False
        try:
            return self.status("wsrep_local_state_comment") == "Synced"
        except pymysql.err.OperationalError:
            return False

    def leave(self) -> None:
        """Cut it off from the other nodes until ``come_back``; it notices after some seconds, and serves nobody."""
        self.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
        until(lambda: self.status("wsrep_ready") == "OFF", timeout_s=START_TIMEOUT_S)

    def come_back(self) -> None:
        """Rejoin the cluster and receive what it has missed."""
        self.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
        until(self._is_synced, timeout_s=START_TIMEOUT_S)

    def status(self, name: str) -> object:
        """Return one of the node's status variables."""
        return self.query(f"SHOW STATUS LIKE '{name}'")[0][1]

    def query(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        """Run a statement as root and return its rows."""
        connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root", autocommit=True)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return tuple(cursor.fetchall())
        finally:
            connection.close()

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _account() -> str | None:
    """Return the user that runs the nodes: MariaDB refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else None


@contextlib.contextmanager
def running_cluster(programs: Programs, variables: Sequence[Mapping[str, str]] = ({},) * NODES) -> Iterator[list[Node]]:
    """Run three nodes on a temporary directory, each with its own variables; stop and delete them afterwards."""
    with tempfile.TemporaryDirectory(prefix="galera-") as name:
        shutil.chown(name, user=_account() or pwd.getpwuid(os.geteuid()).pw_name)
        nodes = [Node(programs, Path(name) / str(number), own) for number, own in enumerate(variables)]
        cluster = "gcomm://" + ",".join(f"127.0.0.1:{node.group_port}" for node in nodes)
        try:
            for node in nodes:
                node.make()
                node.start(cluster, is_first=node is nodes[0])
            yield nodes
        finally:
            for node in nodes:
                node.kill()


def main() -> None:
    """Run a cluster until Ctrl-C."""
    programs = Programs(*map(Path, sys.argv[1:2]))
    if missing := programs.missing():
        sys.exit(f"{missing}; see the head of {__file__}")
    with running_cluster(programs) as nodes, contextlib.suppress(KeyboardInterrupt):
        nodes[0].query("CREATE DATABASE placement CHARACTER SET utf8mb4")
        print(*(node.url("placement") for node in nodes), sep="\n", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

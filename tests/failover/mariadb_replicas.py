"""A MariaDB server and a replica that follows it by GTID, on loopback, if Debian's package is installed."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.failover.replicas import NAME, wait_until
from tests.mariadb import SERVER, execute, unprivileged_user
from tests.servers import free_port

# The data is temporary, so nothing waits for a disk.
OPTIONS = ("--bind-address=127.0.0.1", "--binlog-format=ROW", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")
USER = "CREATE USER placement@'127.0.0.1' IDENTIFIED BY 'secret'"
RIGHTS = "GRANT ALL ON *.* TO placement@'127.0.0.1'"
FOLLOW = (
    "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='placement', "
    "MASTER_PASSWORD='secret', MASTER_USE_GTID=slave_pos"
)


class Node:
    """One of the two servers."""

    def __init__(self, directory: Path, number: int) -> None:
        user = unprivileged_user()
        directory.mkdir()
        shutil.chown(directory, user=user)
        self.port = free_port()
        self.url = f"mysql+pymysql://placement:secret@127.0.0.1:{self.port}/{NAME}?charset=utf8mb4"
        self._socket, self._log = directory / "socket", directory / "log"
        data = [f"--datadir={directory / 'data'}", f"--user={user}"]
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", *data],
            check=True, capture_output=True,
        )  # fmt: skip
        own = [f"--socket={self._socket}", f"--port={self.port}", f"--server-id={number}", "--log-bin=binary-log"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([SERVER, "--no-defaults", *data, *own, *OPTIONS], stdout=log, stderr=log)

    def ready(self) -> bool:
        """Return whether it accepts connections."""
        return "ready for connections" in self._log.read_text(errors="replace")

    def execute(self, *statements: str) -> None:
        """Run statements as the root of the server."""
        execute(self._socket, *statements)

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        self._process.kill()
        self._process.wait(60)


@contextlib.contextmanager
def running_replication() -> Iterator[tuple[Node, Node]]:
    """Run a primary with an empty database and its replica; stop both afterwards."""
    with tempfile.TemporaryDirectory(prefix="mariadb-pair-") as name, contextlib.ExitStack() as stack:
        shutil.chown(name, user=unprivileged_user())
        nodes = []
        for number in (1, 2):
            node = Node(Path(name) / str(number), number)
            stack.callback(node.kill)
            wait_until(node.ready)
            nodes.append(node)
        primary, replica = nodes
        primary.execute(USER, RIGHTS, f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4")
        replica.execute(FOLLOW.format(port=primary.port), "START SLAVE")
        yield primary, replica

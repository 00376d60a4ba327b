"""Bulk reads from a real MariaDB replica, while it follows, lags, and fails."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.domain.inventory import ProviderFilter
from placement.services.bulk_read import read_inventory
from placement.services.providers import create_provider
from placement.settings import DatabaseSettings
from placement.store.connection.database import Database
from placement.store.lifecycle.opening import open_database
from placement.store.lifecycle.standby import Standby
from tests import mariadb
from tests.claims import new_uuid
from tests.failover.replicas import NAME
from tests.servers import free_port, until

# The data is temporary, so nothing waits for a disk.
OPTIONS = ("--bind-address=127.0.0.1", "--binlog-format=ROW", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")
USER = "CREATE USER placement@'127.0.0.1' IDENTIFIED BY 'secret'"
RIGHTS = "GRANT ALL ON *.* TO placement@'127.0.0.1'"
FOLLOW = (
    "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='placement', "
    "MASTER_PASSWORD='secret', MASTER_USE_GTID=slave_pos"
)


class Node(mariadb.MariaDB):
    """One of the two servers."""

    def __init__(self, directory: Path, number: int) -> None:
        super().__init__(directory)
        directory.mkdir()
        self.port = free_port()
        self.url = f"mysql+pymysql://placement:secret@127.0.0.1:{self.port}/{NAME}?charset=utf8mb4"
        own = (f"--port={self.port}", f"--server-id={number}", "--log-bin=binary-log")
        self._process = mariadb.launched(directory, *own, *OPTIONS)

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        self._process.kill()
        self._process.wait(60)


@contextlib.contextmanager
def running_replication() -> Iterator[tuple[Node, Node]]:
    """Run a primary with an empty database and its replica; stop both afterwards."""
    with tempfile.TemporaryDirectory(prefix="mariadb-pair-") as name, contextlib.ExitStack() as stack:
        shutil.chown(name, user=mariadb.unprivileged_user())
        nodes = []
        for number in (1, 2):
            node = Node(Path(name) / str(number), number)
            stack.callback(node.kill)
            until(node.answers)
            nodes.append(node)
        primary, replica = nodes
        primary.execute(USER, RIGHTS, f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4")
        replica.execute(FOLLOW.format(port=primary.port), "START SLAVE")
        yield primary, replica


@pytest.fixture
def pair() -> Iterator[tuple[Node, Node]]:
    if not mariadb.SERVER.exists():
        pytest.skip(f"there is no {mariadb.SERVER} (Debian: mariadb-server)")
    with running_replication() as running:
        yield running


@pytest.fixture
def database(pair: tuple[Node, Node]) -> Iterator[Database]:
    primary, replica = pair
    opened = open_database(DatabaseSettings(connection=primary.url, slave_connection=replica.url, sync_on_startup=True))
    yield opened
    opened.dispose()


def is_in_use(standby: Standby) -> bool:
    standby.examine()
    return standby.may_serve()


def hosts_found(database: Database) -> int:
    return len(read_inventory(database, ProviderFilter()).providers)


def add_host(database: Database) -> None:
    uuid = new_uuid()
    create_provider(database, uuid=uuid, name=uuid)


def test_a_replica_is_read_from_while_it_follows(pair: tuple[Node, Node], database: Database) -> None:
    _primary, replica = pair
    standby = database.standby
    assert standby is not None
    add_host(database)
    assert is_in_use(standby)
    assert hosts_found(database) == 1
    replica.execute("STOP SLAVE SQL_THREAD")
    add_host(database)
    assert hosts_found(database) == 1, "the replica has not heard of it yet"
    assert not is_in_use(standby)
    assert hosts_found(database) == 2, "the replica is too far behind, so the primary answers"
    replica.execute("START SLAVE SQL_THREAD")
    assert is_in_use(standby)
    assert hosts_found(database) == 2
    replica.kill()
    assert hosts_found(database) == 2
    assert not is_in_use(standby)
    assert hosts_found(database) == 2

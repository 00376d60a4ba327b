"""Bulk reads from a real MariaDB replica, while it follows, lags, and fails."""

from collections.abc import Iterator

import pytest

from placement.domain.provider import ProviderFilter
from placement.services.bulk_read import read_inventory
from placement.services.providers import create_provider
from placement.settings import DatabaseSettings
from placement.store.connection.database import Database
from placement.store.lifecycle.opening import open_database
from placement.store.lifecycle.standby import Standby
from tests import mariadb
from tests.claims import new_uuid
from tests.failover.mariadb_replicas import Node, running_replication


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

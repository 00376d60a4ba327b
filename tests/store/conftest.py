"""Databases of one kind, opened, beside those of each kind in tests/conftest.py."""

from collections.abc import Iterator

import pytest

from placement.store.connection.database import Database
from tests.conftest import KINDS
from tests.databases import opened_database


@pytest.fixture(params=[kind for kind in KINDS if kind != "sqlite"])
def server_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database on a server: its writers do not wait for each other."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def on_server(server_url: str) -> Iterator[Database]:
    """A migrated database on a server."""
    with opened_database(server_url) as database:
        yield database


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Database]:
    """A migrated SQLite database."""
    with opened_database(sqlite_url) as database:
        yield database


@pytest.fixture
def postgresql(postgresql_url: str) -> Iterator[Database]:
    """A migrated PostgreSQL database."""
    with opened_database(postgresql_url) as database:
        yield database


@pytest.fixture
def mariadb(mariadb_url: str) -> Iterator[Database]:
    """A migrated MariaDB database."""
    with opened_database(mariadb_url) as database:
        yield database

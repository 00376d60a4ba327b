"""Databases of three kinds; MariaDB only if Debian's package is installed."""

from collections.abc import Iterator

import pytest

from placement.store.connection.database import Database
from tests.databases import open_database

SERVERS = ["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)]
"""The kinds of databases that are servers: their writers do not wait for each other."""
THREE_KINDS = ["sqlite", *SERVERS]


@pytest.fixture(params=THREE_KINDS)
def migrated_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database without data, of each of the three kinds."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=THREE_KINDS)
def empty_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database without tables, of each of the three kinds."""
    url: str = request.getfixturevalue(f"empty_{request.param}_url")
    return url


@pytest.fixture
def migrated(migrated_url: str) -> Iterator[Database]:
    """A migrated database without data, of each of the three kinds, opened."""
    opened = open_database(migrated_url)
    yield opened
    opened.dispose()


@pytest.fixture(params=SERVERS)
def server_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database on a server."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def on_server(server_url: str) -> Iterator[Database]:
    """A migrated database on a server, opened."""
    opened = open_database(server_url)
    yield opened
    opened.dispose()


@pytest.fixture
def postgresql(postgresql_url: str) -> Iterator[Database]:
    """A migrated PostgreSQL database, opened."""
    opened = open_database(postgresql_url)
    yield opened
    opened.dispose()

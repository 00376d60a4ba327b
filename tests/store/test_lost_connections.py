"""Connections that the database server has closed while they were idle, as it does when it restarts."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from placement.settings import DatabaseSettings
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads, reads_once, writes
from placement.store.lifecycle.opening import open_database

CUT = {
    "postgresql": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT concat('KILL ', id) FROM information_schema.processlist "
    "WHERE db = database() AND id <> connection_id()",
}


def one(tx: Transaction) -> int:
    return int(tx.execute(text("SELECT 1")).scalar_one())


UNITS = {"reads": reads(one), "reads_once": reads_once(one), "writes": writes(one)}


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(DatabaseSettings(connection=url))
    yield opened
    opened.dispose()


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_of_work_is_done_with_another_connection(url: str, database: Database, unit: str) -> None:
    assert UNITS[unit](database) == 1
    cut_all(url)
    assert UNITS[unit](database) == 1


def cut_all(url: str) -> None:
    """Close all other connections to the database."""
    other = open_database(DatabaseSettings(connection=url))
    try:
        with other.engine.begin() as connection:
            found = connection.execute(text(CUT[other.dialect])).scalars().all()
            if other.dialect == "mysql":
                for kill in found:
                    connection.execute(text(kill))
    finally:
        other.dispose()

"""Connections, transactions and prepared statements, which this server begins, ends and shares in ways of its own."""

import ctypes
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import bindparam, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from placement.app import create_app
from placement.errors import Invalid, Unavailable
from placement.services.providers import create_provider
from placement.settings import DatabaseSettings, Settings
from placement.store.connection.database import Database, Transaction, reads, reads_once, writes
from placement.store.connection.statements import MAX_SHORT, PreparedStatement, RowChange, row_insert
from placement.store.tables import projects, resource_providers
from tests.claims import new_uuid
from tests.databases import opened_database

SETTINGS = ("transaction_isolation", "transaction_read_only")
OFTEN = 8
"""The driver prepares a statement on its sixth execution."""


@reads
def settings_of_a_reader(tx: Transaction) -> list[str]:
    return [tx.connection.execute(text(f"SHOW {name}")).scalar_one() for name in SETTINGS]


@writes
def refused(tx: Transaction) -> None:
    tx.connection.execute(text("SELECT count(*) FROM consumers")).scalar_one()
    raise Invalid("no")


@reads_once
def prepared(tx: Transaction) -> int:
    return int(tx.connection.execute(text("SELECT count(*) FROM pg_prepared_statements")).scalar_one())


def providers_that_appear(tx: Transaction) -> int:
    """Count twice, while another transaction commits a provider in between."""
    count = text("SELECT count(*) FROM resource_providers")
    before: int = tx.execute(count).scalar_one()
    uuid = new_uuid()
    create_provider(tx.database, uuid=uuid, name=uuid)
    return int(tx.execute(count).scalar_one()) - before


def delete_everything(tx: Transaction) -> None:
    tx.execute(text("DELETE FROM resource_providers"))


def test_a_reader_sees_one_moment_and_the_writer_after_it_the_newest(on_server: Database):
    assert reads(providers_that_appear)(on_server) == 0
    assert writes(providers_that_appear)(on_server) == 1
    assert reads(providers_that_appear)(on_server) == 0


def test_a_reader_may_not_write(on_server: Database):
    with pytest.raises((Unavailable, DBAPIError), match=r"(?i)read.only"):
        reads(delete_everything)(on_server)
    writes(delete_everything)(on_server)


def test_a_reader_that_asked_nothing_leaves_the_next_transaction_alone(on_server: Database):
    reads(lambda tx: None)(on_server)
    writes(delete_everything)(on_server)
    writes(lambda tx: None)(on_server)
    assert reads(providers_that_appear)(on_server) == 0


def test_a_refused_change_leaves_prepared_statements_and_no_open_transaction(postgresql: Database):
    for _ in range(OFTEN):
        with pytest.raises(Invalid):
            refused(postgresql)
    assert settings_of_a_reader(postgresql) == ["repeatable read", "on"]
    assert prepared(postgresql) > 0


NAMES = ["plain", 'with "quotes"', "back\\slash", "a,b", "{curly}", "NULL", "'", "$1", "%s", "ünï", ""]

PROJECT = projects.c.external_id
INSERT = row_insert(projects, PROJECT)
_NAMED = select(PROJECT).where(PROJECT.in_(bindparam("names", expanding=True))).order_by(projects.c.id)
NAMED, BY_KEY = PreparedStatement(_NAMED), PreparedStatement(_NAMED, by_key=True)


@writes
def insert(tx: Transaction, statement: RowChange, rows: list) -> None:
    tx.write_rows(statement, rows)


@reads
def rows(tx: Transaction, statement: PreparedStatement, **values) -> list:
    return [tuple(row) for row in tx.rows(statement, values)]


@pytest.fixture
def named(database: Database) -> Database:
    insert(database, INSERT, [{"external_id": name} for name in NAMES])
    return database


@pytest.mark.parametrize("statement", [NAMED, BY_KEY])
def test_a_list_finds_its_members_and_no_other(named: Database, statement: PreparedStatement):
    for name in NAMES:
        assert rows(named, statement, names=[name]) == [(name,)]
    assert rows(named, statement, names=[]) == []
    assert [name for (name,) in rows(named, statement, names=NAMES)] == NAMES
    assert [name for (name,) in rows(named, statement, names=[*NAMES, *map(str, range(MAX_SHORT))])] == NAMES


@pytest.mark.parametrize("statement", [NAMED, BY_KEY])
def test_a_text_longer_than_the_column_is_not_cut(named: Database, statement: PreparedStatement):
    insert(named, INSERT, [{"external_id": "x" * 255}])
    assert rows(named, statement, names=["x" * 256]) == []


def test_a_refused_statement_is_an_error_of_sqlalchemy(database: Database):
    twice = [{"uuid": "1", "name": "one"}, {"uuid": "1", "name": "two"}]
    with database.writer.begin() as connection, pytest.raises(IntegrityError):
        row_insert(resource_providers, resource_providers.c.uuid, resource_providers.c.name).send(connection, twice)


UNHEARD = ctypes.PyDLL(None).fork
"""Forks as uWSGI does without ``lazy-apps``, after it has loaded the application: Python does not hear of it."""


def test_a_fork_does_not_speak_on_its_parents_connection(postgresql_url: str):
    with opened_database(postgresql_url) as database:
        mine = _backend(database)
        assert _in_a_fork(lambda: _backend(database)) != mine
        assert _backend(database) == mine


@pytest.fixture
def served(postgresql_url: str) -> Iterator[Database]:
    """The database of an application that was just created."""
    app = create_app(Settings(database=DatabaseSettings(connection=postgresql_url), auth_strategy="noauth2"))
    database = app.extensions["placement"].database
    yield database
    database.dispose()


def test_forks_that_python_does_not_hear_of_share_no_connection(served: Database):
    assert len({_in_a_fork(lambda: _backend(served), fork=UNHEARD) for _ in range(3)}) == 3


def test_a_fork_that_python_does_not_hear_of_watches_its_own_statements(served: Database):
    def threads() -> str:
        served.engine.dispose(close=False)
        _backend(served)
        return str(len([*Path("/proc/self/task").iterdir()]))

    _backend(served)  # watched by a thread of this process
    assert _in_a_fork(threads, fork=UNHEARD) == "2"


def _in_a_fork(work: Callable[[], str], *, fork: Callable[[], int] = os.fork) -> str:
    """Return what some work in a fork of this process tells."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        _tell(work, writer)
    os.close(writer)
    with os.fdopen(reader) as answer:
        theirs = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    return theirs


def _backend(database: Database) -> str:
    """Return the PostgreSQL process that serves the pool's next connection."""
    with database.engine.connect() as connection:
        return str(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def _tell(work: Callable[[], str], writer: int) -> None:
    """Do the child's part, and exit before any of pytest's code can run."""
    try:
        os.write(writer, work().encode())
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

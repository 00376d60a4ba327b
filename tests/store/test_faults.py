"""A database that fails in every way it can report: no traceback, one log line, and the right answer to the client."""

import logging
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError

from placement.services.providers import create_provider
from placement.store.connection import faults
from placement.store.connection.database import Database, Transaction, reads, reads_once, writes
from placement.store.connection.faults import DatabaseFailed
from tests.claims import new_uuid
from tests.databases import opened_database
from tests.empty_database import sqlite_path

POSTGRESQL = {
    "read-only": "25006",
    "serialization": "40001",
    "deadlock": "40P01",
    "out of resources": "53000 53400",
    "disk full": "53100",
    "out of memory": "53200",
    "too many connections": "53300",
    "not ready": "55000",
    "lock timeout": "55P03",
    "query cancelled": "57014",
    "restarting": "57P01 57P03",
    "input/output error": "58000 58030 58P01",
    "internal error": "XX000",
    "corrupt": "XX001 XX002",
}
"""The states of SQL that have a cause."""

MARIADB = {
    "serialization": "1020",
    "disk full": "1021 1114",
    "input/output error": "1030",
    "out of memory": "1038",
    "too many connections": "1040 1203",
    "cluster not ready": "1047",
    "restarting": "1053",
    "corrupt": "1194",
    "lock timeout": "1205",
    "out of resources": "1206",
    "deadlock": "1213",
    "read-only": "1290",
    "query cancelled": "1317 1969 3024",
}
"""The numbers of errors that have one."""


def codes(causes: dict[str, str]) -> list[tuple[str, str]]:
    return [(code, cause) for cause, listed in causes.items() for code in listed.split()]


def send(tx: Transaction, statement: str) -> object:
    return tx.connection.exec_driver_sql(statement)


UNITS = {"reads": reads(send), "reads_once": reads_once(send), "writes": writes(send)}


def refusal_of(database: Database, statement: str, *, unit: str = "writes") -> DatabaseFailed:
    database.attempts = 2
    with pytest.raises(DatabaseFailed) as caught:
        UNITS[unit](database, statement)
    return caught.value


def raising(sqlstate: str) -> str:
    return f"DO $$ BEGIN RAISE EXCEPTION 'could not: it is full' USING ERRCODE = '{sqlstate}'; END $$"


def with_setting(url: str, setting: str) -> AbstractContextManager[Database]:
    return opened_database(f"{url}{'&' if '?' in url else '?'}options=-c%20{setting}")


@pytest.mark.parametrize(("sqlstate", "cause"), codes(POSTGRESQL))
@pytest.mark.parametrize("unit", UNITS)
def test_what_postgresql_says_has_a_cause(postgresql: Database, caplog, sqlstate: str, cause: str, unit: str):
    refused = refusal_of(postgresql, raising(sqlstate), unit=unit)
    assert refused.fault.cause == cause
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert line.exc_info is None
    assert line.getMessage() == f"The database failed a request ({cause}): could not: it is full"


@pytest.mark.mariadb
@pytest.mark.parametrize(("number", "cause"), codes(MARIADB))
def test_what_mariadb_says_has_a_cause(mariadb: Database, number: str, cause: str):
    refused = refusal_of(mariadb, f"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'no'")
    assert refused.fault.cause == cause


@pytest.mark.mariadb
@pytest.mark.parametrize("trigger", ["Unknown trigger", "Trigger 'provider_usages_unstocked'"])
def test_a_trigger_that_a_session_could_not_load_is_no_bug_of_the_statement(mariadb: Database, trigger: str):
    """Seen on Galera, with writers on all nodes: the same statement succeeds a moment later."""
    words = f"{trigger} has an error in its body: 'You have an error in your SQL syntax'"
    signal = f'SIGNAL SQLSTATE "42000" SET MYSQL_ERRNO = 1064, MESSAGE_TEXT = "{words}"'
    assert refusal_of(mariadb, signal).fault.cause == "schema changed"
    with pytest.raises(ProgrammingError):
        writes(send)(mariadb, "SELEC 1")


def test_a_connection_that_cannot_be_reset_takes_one_line(postgresql: Database, caplog: pytest.LogCaptureFixture):
    connection = postgresql.engine.raw_connection()
    connection.driver_connection.close()
    connection.close()  # rolls back
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert line.exc_info is None
    assert "the connection is closed" in line.getMessage()


@pytest.mark.mariadb
def test_connections_to_a_node_that_is_cut_off_are_given_up(mariadb: Database):
    """It refuses the pool's ROLLBACK as well, which used to be logged with a traceback."""
    session = reads(lambda tx: tx.connection.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one())
    before = session(mariadb)
    assert session(mariadb) == before
    refusal_of(mariadb, "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1047, MESSAGE_TEXT = 'no'", unit="reads")
    assert session(mariadb) != before


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
@pytest.mark.parametrize("unit", UNITS)
def test_nothing_is_answered_from_a_file_that_is_gone(sqlite: Database, sqlite_url: str, *, unit: str, replaced: bool):
    path = sqlite_path(sqlite_url)
    UNITS[unit](sqlite, "SELECT 1")
    kept = path.rename(path.with_name("kept"))
    if replaced:
        shutil.copy(kept, path)
    refused = refusal_of(sqlite, "SELECT 1", unit=unit)
    assert (refused.fault, refused.retry_after_s) == (faults.FILE_MOVED, faults.LATER_S)
    assert path.exists() == replaced
    kept.replace(path)
    UNITS[unit](sqlite, "SELECT 1")


def test_no_write_is_acknowledged_if_the_file_went_away_meanwhile(sqlite: Database, sqlite_url: str):
    def write_and_lose(tx: Transaction) -> None:
        send(tx, "INSERT INTO traits (name) VALUES ('CUSTOM_LOST')")
        sqlite_path(sqlite_url).unlink()

    with pytest.raises(DatabaseFailed, match="removed or replaced"):
        writes(write_and_lose)(sqlite)
    assert sqlite.write_fault == "file removed or replaced"


def test_a_mistake_of_this_server_is_no_fault_of_the_database(database: Database):
    with pytest.raises(Exception, match=r"(?i)syntax") as caught:
        UNITS["reads"](database, "SELEKT 1")
    assert not isinstance(caught.value, DatabaseFailed)


@pytest.mark.parametrize(
    ("setting", "statement", "unit", "refused_as"),
    [
        ("statement_timeout=30ms", "SELECT pg_sleep(5)", "reads", (faults.TOO_LONG.cause, None)),
        ("statement_timeout=30ms", "SELECT pg_sleep(5)", "writes", (faults.TOO_LONG.cause, faults.SOON_S)),
        ("default_transaction_read_only=on", "DELETE FROM consumers", "writes", ("read-only", faults.LATER_S)),
    ],
)
def test_a_refusal_says_when_to_try_again(postgresql_url: str, setting: str, statement: str, unit: str, refused_as):
    """A query that takes too long is not to be sent again."""
    with with_setting(postgresql_url, setting) as database:
        refused = refusal_of(database, statement, unit=unit)
    assert (refused.fault.cause, refused.retry_after_s) == refused_as


def test_an_operator_may_cancel_a_query(postgresql: Database, postgresql_url: str):
    refused: list[DatabaseFailed] = []
    waiting = Thread(target=lambda: refused.append(refusal_of(postgresql, "SELECT pg_sleep(30)", unit="reads_once")))
    waiting.start()
    cancel = (
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(30)' AND state='active'"
    )
    with opened_database(postgresql_url) as operator, operator.looker.connect() as connection:
        while not connection.execute(text(cancel)).all():
            pass
    waiting.join(30)
    assert refused[0].fault is faults.TOO_LONG


def test_a_lock_that_is_not_given_in_time(postgresql: Database, postgresql_url: str):
    with with_setting(postgresql_url, "lock_timeout=20ms") as impatient:
        with postgresql.engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE resource_providers")
            impatient.attempts = 2
            with pytest.raises(DatabaseFailed, match="lock timeout"):
                create_provider(impatient, uuid=new_uuid(), name="h1")
            assert impatient.write_fault == "lock timeout"
        create_provider(impatient, uuid=new_uuid(), name="h1")
        assert impatient.write_fault is None


@contextmanager
def role_without_connections(url: str) -> Iterator[str]:
    """Create a user who may not connect; the server only needs the name."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
        try:
            yield url.replace("postgres:@", "crowded:@")
        finally:
            connection.exec_driver_sql("DROP ROLE crowded")
    engine.dispose()


def test_a_database_without_a_free_connection(postgresql_url: str):
    with role_without_connections(postgresql_url) as url, opened_database(url) as database:
        assert "crowded" in url
        assert refusal_of(database, "SELECT 1", unit="reads").fault is faults.TOO_MANY_CONNECTIONS


def test_a_file_that_may_not_be_written(sqlite: Database):
    with sqlite.looker.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
    assert refusal_of(sqlite, "DELETE FROM traits").fault.cause == "read-only"


def test_a_file_that_may_not_grow(sqlite: Database, sqlite_url: str):
    """The system refuses a write with an error that SQLite reports as IOERR; later writes succeed."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    create_provider(sqlite, uuid=new_uuid(), name="h1")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        sqlite.attempts = 2
        with pytest.raises(DatabaseFailed, match="input/output"):
            create_provider(sqlite, uuid=new_uuid(), name="h2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    create_provider(sqlite, uuid=new_uuid(), name="h2")
    assert integrity(sqlite_url) == "ok"


def fill(database: Database) -> None:
    for number in range(2000):
        create_provider(database, uuid=new_uuid(), name=f"h{number}" + "x" * 150)


def test_a_file_without_room(sqlite: Database, sqlite_url: str):
    with sqlite.looker.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # no more than the current size
    with pytest.raises(DatabaseFailed, match="disk full"):
        fill(sqlite)
    assert integrity(sqlite_url) == "ok"


def test_a_file_that_is_damaged(sqlite: Database, sqlite_url: str):
    sqlite.dispose()
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    assert refusal_of(sqlite, "SELECT count(*) FROM traits", unit="reads").fault is faults.CORRUPT


def integrity(url: str) -> str:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        found: str = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    return found

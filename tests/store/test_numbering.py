"""Where readers meet many rows of the journal without numbers, these are numbered meanwhile. Only MariaDB has such."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from placement.services import tree_history
from placement.services.tree_history import TOLERATED_UNNUMBERED, BackgroundNumbering, CloudVersion, TreeHistory
from placement.store.connection.database import Database, Transaction, reads
from placement.store.journal.changes import MAX_UNNUMBERED
from tests.databases import open_database
from tests.store.rows import add_providers, run

pytestmark = pytest.mark.mariadb


@pytest.fixture
def database(mariadb_url: str) -> Iterator[Database]:
    """A migrated MariaDB database, opened."""
    opened = open_database(mariadb_url)
    yield opened
    opened.dispose()


def wait() -> None:
    """Wait until nothing is being numbered."""
    for thread in threading.enumerate():
        if thread.name == tree_history.NUMBERING_THREAD:
            thread.join()


def write(database: Database, rows: int) -> None:
    """Leave so many rows without numbers in the journal."""
    with database.writer.begin() as connection:
        add_providers(connection, rows)


def unnumbered(database: Database) -> int:
    with database.engine.connect() as connection:
        return int(connection.scalar(text("SELECT count(*) FROM placement_journal WHERE commit_mark IS NULL")) or 0)


@reads
def version(tx: Transaction, history: TreeHistory) -> CloudVersion | None:
    return history.version(tx)


@pytest.mark.parametrize("rows", [TOLERATED_UNNUMBERED // 3, 2 * TOLERATED_UNNUMBERED + 1, MAX_UNNUMBERED + 1])
def test_a_few_rows_are_remembered_and_many_numbered(database: Database, rows: int) -> None:
    write(database, rows)
    left, history = unnumbered(database), TreeHistory()
    assert version(database, history) == (CloudVersion(history, 1) if rows < MAX_UNNUMBERED else None)
    wait()
    assert unnumbered(database) == (left if rows < TOLERATED_UNNUMBERED else 0)
    assert version(database, history) == CloudVersion(history, 1)  # nothing has changed


def test_a_standby_has_them_numbered_by_its_primary(database: Database, mariadb_url: str) -> None:
    write(database, 2 * TOLERATED_UNNUMBERED + 1)
    standby = open_database(mariadb_url)
    standby.primary = database
    standby.writer = None  # type: ignore[assignment]  # it cannot write
    version(standby, TreeHistory())
    wait()
    assert unnumbered(database) == 0
    standby.dispose()


def test_after_a_failure_it_is_left_to_others_for_a_minute(database: Database) -> None:
    now = [1000.0]
    attempts = BackgroundNumbering(lambda: now[0])

    def tried() -> int:
        attempts.begin(database)
        wait()
        return unnumbered(database)

    write(database, 5)
    left = unnumbered(database)
    with database.writer.begin() as connection:
        run(connection, "RENAME TABLE placement_journal TO elsewhere")
    attempts.begin(database)
    wait()
    with database.writer.begin() as connection:
        run(connection, "RENAME TABLE elsewhere TO placement_journal")
    assert tried() == left
    now[0] += tree_history.NUMBERING_PAUSE_S
    assert tried() == 0

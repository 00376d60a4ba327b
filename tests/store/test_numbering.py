"""Where readers meet many rows of the journal without numbers, these are numbered meanwhile. Only MariaDB has such."""

import threading

import pytest
from sqlalchemy import text

from placement.services import tree_history
from placement.services.tree_history import TOLERATED_UNNUMBERED, CloudVersion, TreeHistory
from placement.store.connection.database import Database, Transaction, reads
from placement.store.journal.changes import MAX_UNNUMBERED
from tests.databases import opened_database
from tests.store.rows import add_providers

pytestmark = pytest.mark.mariadb


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
def test_a_few_rows_are_remembered_and_many_numbered(mariadb: Database, rows: int) -> None:
    write(mariadb, rows)
    left, history = unnumbered(mariadb), TreeHistory()
    assert version(mariadb, history) == (CloudVersion(history, 1) if rows < MAX_UNNUMBERED else None)
    wait()
    assert unnumbered(mariadb) == (left if rows < TOLERATED_UNNUMBERED else 0)
    assert version(mariadb, history) == CloudVersion(history, 1)  # nothing has changed


def test_a_standby_has_them_numbered_by_its_primary(mariadb: Database, mariadb_url: str) -> None:
    write(mariadb, 2 * TOLERATED_UNNUMBERED + 1)
    with opened_database(mariadb_url) as standby:
        standby.primary = mariadb
        standby.writer = None  # type: ignore[assignment]  # it cannot write
        version(standby, TreeHistory())
        wait()
    assert unnumbered(mariadb) == 0

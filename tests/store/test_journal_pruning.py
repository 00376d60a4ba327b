"""Old rows of the journal are deleted in portions, by one worker at a time, however many want to."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from sqlalchemy import func, insert, literal, select

from placement.services.journal import JournalPruner, put_in_order
from placement.services.providers import create_provider
from placement.store.connection.database import Database
from placement.store.journal.history import ROWS_AT_ONCE
from placement.store.tables import placement_journal, utc_now
from tests.claims import new_uuid

DAYS = 90
OLD = 2 * ROWS_AT_ONCE + 300
J = placement_journal.c


@pytest.fixture
def database(migrated: Database) -> Database:
    """A database with OLD rows of the journal that are too old, and young ones after them."""
    create_provider(migrated, uuid=new_uuid(), name="compute1", parent_uuid=None)
    rows = [column for column in J if column.name not in {"id", "time"}]
    with migrated.engine.begin() as connection:
        while (count := connection.execute(select(func.count()).select_from(placement_journal)).scalar_one()) < OLD:
            copies = select(literal(utc_now()), *rows).limit(OLD - count)
            connection.execute(insert(placement_journal).from_select([J.time, *rows], copies))
        connection.execute(placement_journal.update().values(time=utc_now() - timedelta(days=DAYS + 1)))
    create_provider(migrated, uuid=new_uuid(), name="compute2", parent_uuid=None)
    put_in_order(migrated)
    return migrated


def times(database: Database) -> list[datetime]:
    with database.engine.begin() as connection:
        return list(connection.execute(select(J.time).order_by(J.id)).scalars())


def before() -> datetime:
    return utc_now() - timedelta(days=DAYS)


def test_all_that_is_too_old_goes_in_portions_and_nothing_else(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    young = [moment for moment in times(database) if moment >= before()]
    assert JournalPruner(database, DAYS, pause_s=0).look() == OLD
    assert times(database) == young
    assert "2300 rows of the journal were older than 90 days" in caplog.text
    assert JournalPruner(database, DAYS, pause_s=0).look() == 0


def test_several_at_once_delete_each_row_once(database: Database) -> None:
    young = [moment for moment in times(database) if moment >= before()]
    barrier = threading.Barrier(4)

    def look(_number: int) -> int:
        pruner = JournalPruner(database, DAYS, pause_s=0)
        barrier.wait()
        return pruner.look()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(look, range(4))) == OLD
    assert times(database) == young

"""A reader of the journal never misses what is committed after its cursor, until old rows are pruned."""

import logging
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, func, insert, literal, select, text

from placement.errors import Invalid
from placement.services.journal import JournalPruner, newest, put_in_order, read_feed
from placement.services.providers import create_provider
from placement.store.connection.database import Database, Transaction, reads
from placement.store.journal.history import ROWS_AT_ONCE
from placement.store.journal.order import BEGINNING, Cursor, CursorGone, SeenMarks, cursor_from, cursor_of
from placement.store.journal.reading import Entry
from placement.store.tables import placement_journal, utc_now
from tests.claims import new_uuid
from tests.store.racing_writers import PROVIDERS, RacingWriters
from tests.store.replayed import Tables, assert_same, journal_rows, replayed, tables_of
from tests.store.rows import VCPU, add_providers, allocate, opened, run


@dataclass
class Reader:
    """Follows the journal, in portions."""

    database: Database
    cursor: Cursor = BEGINNING
    limit: int = 7
    entries: list[Entry] = field(default_factory=list)

    def read(self) -> list[int]:
        """Read everything new, and return the ids of the rows about allocations."""
        ids = []
        while True:
            entries, self.cursor = read_feed(self.database, cursor_from(self.cursor.text), limit=self.limit)
            self.entries += entries
            ids += [entry.id for entry in entries if entry.kind == "allocation"]
            if len(entries) < self.limit:
                return ids


def written(connection: Connection) -> int:
    """Return the id of the newest journal row about an allocation."""
    query = "SELECT max(id) FROM placement_journal WHERE kind = 'allocation'"
    return int(connection.execute(text(query)).scalar_one())


def test_what_is_committed_late_under_a_lower_number_is_not_missed(on_server: Database) -> None:
    reader = Reader(on_server)
    reader.read()
    with opened(on_server) as slow, opened(on_server) as fast:
        allocate(slow, "slow", {(1, VCPU): 1})
        first = written(slow)
        allocate(fast, "fast", {(2, VCPU): 1})
        second = written(fast)
        assert first < second
        fast.commit()
        assert reader.read() == [second]
        assert reader.read() == []
        slow.commit()
        assert reader.read() == [first]
        assert reader.read() == []


def test_a_portion_does_not_hide_what_is_committed_while_it_is_read(on_server: Database) -> None:
    reader = Reader(on_server, limit=1)
    reader.read()
    with opened(on_server) as slow, opened(on_server) as fast:
        allocate(slow, "slow", {(1, VCPU): 1})
        allocate(fast, "fast", {(2, VCPU): 1, (3, VCPU): 1})
        fast.commit()
        reader.entries, reader.cursor = read_feed(on_server, reader.cursor, limit=1)
        slow.commit()
        assert len(reader.read() + reader.read()) == 2
    assert [entry.consumer_uuid for entry in reader.entries if entry.kind == "allocation"] == ["fast", "fast", "slow"]


def test_claims_on_different_providers_do_not_wait_for_each_other(on_server: Database) -> None:
    with on_server.writer.begin() as connection:
        add_providers(connection, 2)
    with opened(on_server) as first, opened(on_server) as second:
        limit = (
            "SET LOCAL lock_timeout = '1s'" if on_server.dialect == "postgresql" else "SET innodb_lock_wait_timeout = 1"
        )
        run(second, limit)
        for number, connection in ((1, first), (2, second)):
            allocate(connection, f"c{number}", {(number, VCPU): 1})
            run(connection, f"UPDATE resource_providers SET generation = generation + 1 WHERE id = {number}")
            run(connection, f"INSERT INTO consumers (uuid, project_id, user_id) VALUES ('c{number}', 1, 1)")
        second.commit()
        first.commit()


def test_a_reader_that_follows_racing_writers_ends_with_what_the_database_holds(
    database: Database, is_long: bool
) -> None:
    with database.writer.begin() as connection:
        add_providers(connection, PROVIDERS)
    halfway, at_halfway = _snapshot(database)
    writers = RacingWriters(database, 20_000 if is_long else 320)
    writers.start()
    reader = Reader(database, limit=200 if is_long else 50)
    while writers.are_at_work:
        reader.read()
        if random.random() < 0.05:
            halfway, at_halfway = _snapshot(database)
    writers.end()
    reader.read()
    later = Reader(database, halfway, limit=reader.limit)
    later.read()
    with database.engine.connect() as connection:
        rows = {row.id: row for row in journal_rows(connection)}
        tables = tables_of(connection)
    read = [entry.id for entry in reader.entries]
    assert sorted(read) == sorted(rows)
    assert_same(replayed(rows[id_] for id_ in read), tables)
    assert_same(replayed((rows[entry.id] for entry in later.entries), at_halfway), tables)


@reads
def _tables_and_cursor(tx: Transaction) -> tuple[Cursor, Tables]:
    return cursor_of(tx), tables_of(tx.connection)


def _snapshot(database: Database) -> tuple[Cursor, Tables]:
    found, tables = _tables_and_cursor(database)
    return cursor_from(found.text), tables


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM placement_journal", "UPDATE placement_journal SET time = '2001-02-03 04:05:06.000000'"],
    ids=["gone", "another of the same number, as in a restored database"],
)
def test_a_position_whose_row_is_not_there_leads_nowhere(database: Database, change: str) -> None:
    with database.writer.begin() as connection:
        add_providers(connection, 2)
    reader = Reader(database)
    reader.read()
    with database.writer.begin() as connection:
        run(connection, change, "UPDATE resource_providers SET generation = 9")
    with pytest.raises(CursorGone):
        reader.read()


@pytest.mark.parametrize("pruned", ["", "DELETE FROM placement_journal WHERE kind = 'journal'"], ids=["all", "pruned"])
def test_a_restored_dump_is_read_first_and_then_what_is_written_here(postgresql: Database, pruned: str) -> None:
    """Its rows have transaction ids of another server, higher than any here."""
    with postgresql.writer.begin() as connection:
        add_providers(connection, 3)
        run(connection, *filter(None, [pruned]))
        run(connection, "UPDATE placement_journal SET commit_mark = commit_mark + 4000000000")
    reader = Reader(postgresql)
    reader.read()
    assert len(reader.entries) == len({entry.id for entry in reader.entries}) >= 4
    with postgresql.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 1})
    assert len(reader.read()) == 1
    everything = Reader(postgresql)
    everything.read()
    assert [entry.id for entry in everything.entries] == [entry.id for entry in reader.entries]


@pytest.mark.parametrize(
    "text",
    [
        *("", "?", "W10", "WzEsMl0", "bnVsbA", "WyJhIl0", "WzEwLCAxLCAxLCAxXQ"),
        pytest.param(Cursor(SeenMarks(9), anchor=()).text, id="nothing is remembered"),
        pytest.param(Cursor(SeenMarks(9), anchor=(1, 2, 3, 4)).text, id="too much is remembered"),
        pytest.param(Cursor(SeenMarks(9), ahead=(1,) * 70_000).text, id="more ids than a statement takes"),
    ],
)
def test_a_cursor_that_is_none_or_that_no_statement_can_use_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="not a cursor"):
        cursor_from(text)


def test_the_newest_position_has_seen_everything(database: Database) -> None:
    with database.writer.begin() as connection:
        add_providers(connection, 2)
    reader = Reader(database, newest(database))
    assert reader.read() == reader.entries == []
    with database.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 1})
    assert len(reader.read()) == 1


DAYS = 90
OLD = 2 * ROWS_AT_ONCE + 300
J = placement_journal.c


@pytest.fixture
def aged(database: Database) -> Database:
    """A database with OLD rows of the journal that are too old, and young ones after them."""
    create_provider(database, uuid=new_uuid(), name="compute1", parent_uuid=None)
    rows = [column for column in J if column.name not in {"id", "time"}]
    with database.engine.begin() as connection:
        while (count := connection.execute(select(func.count()).select_from(placement_journal)).scalar_one()) < OLD:
            copies = select(literal(utc_now()), *rows).limit(OLD - count)
            connection.execute(insert(placement_journal).from_select([J.time, *rows], copies))
        connection.execute(placement_journal.update().values(time=utc_now() - timedelta(days=DAYS + 1)))
    create_provider(database, uuid=new_uuid(), name="compute2", parent_uuid=None)
    put_in_order(database)
    return database


def times(database: Database) -> list[datetime]:
    with database.engine.begin() as connection:
        return list(connection.execute(select(J.time).order_by(J.id)).scalars())


def before() -> datetime:
    return utc_now() - timedelta(days=DAYS)


def test_all_that_is_too_old_goes_in_portions_and_nothing_else(aged: Database, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    young = [moment for moment in times(aged) if moment >= before()]
    assert JournalPruner(aged, DAYS, pause_s=0).look() == OLD
    assert times(aged) == young
    assert "2300 rows of the journal were older than 90 days" in caplog.text
    assert JournalPruner(aged, DAYS, pause_s=0).look() == 0


def test_several_at_once_delete_each_row_once(aged: Database) -> None:
    young = [moment for moment in times(aged) if moment >= before()]
    barrier = threading.Barrier(4)

    def look(_number: int) -> int:
        pruner = JournalPruner(aged, DAYS, pause_s=0)
        barrier.wait()
        return pruner.look()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(look, range(4))) == OLD
    assert times(aged) == young

"""Readers of PostgreSQL's journal notice that a commit they have seen is gone, though a later transaction survived.

One session gets the lower transaction id and stays open, another commits under a higher one. A dump or a standby that
was cut off has that state. Then the first commits, everybody reads, and the dump is restored or the standby promoted.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from placement.domain.inventory import ProviderFilter
from placement.services.bulk_read import read_inventory
from placement.services.journal import newest, prune, read_feed
from placement.store.connection.database import Database
from placement.store.journal.order import BEGINNING, Cursor, CursorGone, cursor_from
from placement.store.lifecycle import schema
from tests.postgresql import PROGRAMS
from tests.store.rows import VCPU, add_hosts, allocate, opened, run
from tests.store.snapshots import cached_order, order_as_read


@pytest.fixture
def cloud(postgresql: Database) -> Database:
    """Three providers of VCPUs."""
    add_hosts(postgresql, 3)
    return postgresql


class LateCommit:
    """An allocation on the first provider that is committed after one on the second with a higher transaction id."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._slow = opened(database)
        allocate(self._slow, "slow", {(1, VCPU): 9})
        self.mark = self._slow.execute(text("SELECT pg_current_xact_id()::text::bigint")).scalar_one()
        with opened(database) as fast:
            allocate(fast, "fast", {(2, VCPU): 1})
            fast.commit()

    def commit(self) -> None:
        self._slow.commit()
        self._slow.close()

    def lose(self) -> None:
        """Leave what a standby has that was promoted without this commit."""
        with self.database.writer.begin() as connection:
            run(
                connection,
                "SET LOCAL session_replication_role = replica",
                f"DELETE FROM placement_journal WHERE commit_mark = {self.mark}",
                "DELETE FROM allocations WHERE consumer_id = 'slow'",
                "UPDATE provider_usages SET used = 0 WHERE resource_provider_id = 1",
            )


def after_reading_all(database: Database) -> Cursor:
    return read_feed(database, limit=1000)[1]


def within_a_portion(database: Database) -> Cursor:
    """The reader has got one row of it, and not yet that of the commit."""
    return read_feed(database, limit=1)[1]


def at_the_end_of_a_portion(database: Database) -> Cursor:
    """The last page has fewer rows than the reader takes at once."""
    return read_feed(database, within_a_portion(database), limit=1000)[1]


def of_the_inventory(database: Database) -> Cursor:
    found = read_inventory(database, ProviderFilter()).journal
    assert found is not None
    return found


def after_a_quiet_time(database: Database) -> Cursor:
    return read_feed(database, after_reading_all(database), limit=1000)[1]


POSITIONS = [after_reading_all, within_a_portion, at_the_end_of_a_portion, newest, of_the_inventory, after_a_quiet_time]


@pytest.mark.parametrize("has_seen", [True, False])
@pytest.mark.parametrize("position", POSITIONS)
def test_a_reader_that_has_seen_a_lost_commit_begins_anew_and_any_other_goes_on(
    cloud: Database, position: Callable[[Database], Cursor], has_seen: bool
) -> None:
    late = LateCommit(cloud)
    if has_seen:
        late.commit()
    cursor = cursor_from(position(cloud).text)
    if not has_seen:
        late.commit()
    late.lose()
    if has_seen:
        with pytest.raises(CursorGone):
            read_feed(cloud, cursor, limit=1000)
        cursor = BEGINNING
    entries, _cursor = read_feed(cloud, cursor, limit=1000)
    assert "slow" not in {entry.consumer_uuid for entry in entries}


def test_a_cache_that_has_seen_a_lost_commit_begins_anew(cloud: Database) -> None:
    late = LateCommit(cloud)
    late.commit()
    before = cached_order(cloud)
    late.lose()
    assert cached_order(cloud) == order_as_read(cloud) != before


def test_a_reader_of_a_database_that_was_restored_begins_anew(cloud: Database, tmp_path: Path) -> None:
    """As docs/how-to/back-up-and-restore.md has it, but into the same database, which keeps counting transactions."""
    late, dump, url = LateCommit(cloud), str(tmp_path / "dump"), cloud.engine.url.render_as_string(hide_password=False)
    url = url.replace("postgresql+psycopg", "postgresql")
    subprocess.run([PROGRAMS / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
    late.commit()
    cursor = after_reading_all(cloud)
    before = cached_order(cloud)
    subprocess.run([PROGRAMS / "pg_restore", "--clean", f"--dbname={url}", dump], check=True)
    assert cached_order(cloud) is None, "its triggers are not proven"
    schema.upgrade(cloud.engine)
    with pytest.raises(CursorGone):
        read_feed(cloud, cursor, limit=1000)
    assert order_as_read(cloud) != before


def test_pruning_leaves_what_readers_of_a_quiet_journal_count(cloud: Database) -> None:
    late = LateCommit(cloud)
    late.commit()
    cursor = after_reading_all(cloud)
    assert prune(cloud, keep_days=0) > 0
    assert read_feed(cloud, cursor, limit=1000)[0] == []


def test_a_cursor_of_the_first_release_is_still_one() -> None:
    seen = "W1szXSxudWxsLDAsWzIsMTc2NDI0NTc5OTAwMDAwMCwyXSxbXV0"
    assert cursor_from(seen).overlap is None

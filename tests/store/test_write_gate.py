"""The gate: foreign writers of allocations go one at a time, this server's together. Timeouts prove the locks."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from placement.store.connection.database import Database
from placement.store.locks import pass_write_gate
from tests.store.rows import VCPU, add_providers, allocate, kept, run, stocking

FIRST_WRITE_OF_THE_REFERENCE = "DELETE FROM allocations WHERE consumer_id = 'new'"


@contextmanager
def writer(database: Database) -> Iterator[Connection]:
    """Yield a transaction that waits only a moment for a lock, and is rolled back."""
    with database.writer.connect() as connection:
        run(connection, "SET LOCAL lock_timeout = '100ms'")
        yield connection
        connection.rollback()


@contextmanager
def must_wait() -> Iterator[None]:
    """Expect the lock to be refused."""
    with pytest.raises(OperationalError, match="lock timeout"):
        yield


def test_a_foreign_writer_waits_for_another_even_when_it_changes_nothing_yet(postgresql: Database) -> None:
    with writer(postgresql) as one, writer(postgresql) as other:
        run(one, FIRST_WRITE_OF_THE_REFERENCE)
        with must_wait():
            run(other, FIRST_WRITE_OF_THE_REFERENCE)


def test_a_foreign_writer_waits_for_this_server(postgresql: Database) -> None:
    with writer(postgresql) as ours, writer(postgresql) as foreign:
        pass_write_gate(ours)
        with must_wait():
            run(foreign, FIRST_WRITE_OF_THE_REFERENCE)


def test_this_server_waits_for_a_foreign_writer_before_it_has_locked_anything(postgresql: Database) -> None:
    with writer(postgresql) as foreign, writer(postgresql) as ours:
        allocate(foreign, "c1", {(1, VCPU): 1})
        with must_wait():
            pass_write_gate(ours)


def test_writers_of_this_server_go_together(postgresql: Database) -> None:
    with writer(postgresql) as one, writer(postgresql) as other:
        for number, connection in enumerate((one, other)):
            pass_write_gate(connection)
            allocate(connection, "c1", {(number, VCPU): 1})
            assert kept(connection) == {(number, VCPU): 1}


def test_foreign_writers_in_opposite_order_do_not_deadlock(postgresql: Database) -> None:
    """The reference alone answers most such claims on PostgreSQL with 500: it retries in the aborted transaction."""
    with writer(postgresql) as one, writer(postgresql) as other:
        allocate(one, "c1", {(1, VCPU): 1})
        with must_wait():  # at once, not when both hold something
            allocate(other, "c2", {(2, VCPU): 1})
        other.rollback()
        allocate(one, "c1", {(2, VCPU): 1})
        one.commit()
        allocate(other, "c2", {(2, VCPU): 1, (1, VCPU): 1})
        assert kept(other) == {(1, VCPU): 2, (2, VCPU): 2}


@pytest.mark.parametrize(
    "foreign_write",
    [
        stocking((1, VCPU), total=8),
        "UPDATE inventories SET total = 9 WHERE resource_provider_id = 1",
        "DELETE FROM inventories WHERE resource_provider_id = 1",
        "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) VALUES (1, 2, 'c1', 1)",
        "DELETE FROM allocations WHERE consumer_id = 'c0'",
    ],
)
def test_a_foreign_writer_locks_the_provider_with_what_is_kept_of_it(postgresql: Database, foreign_write: str) -> None:
    """The reference changes a provider's generation last; locking only the kept usage before would cause a deadlock."""
    with postgresql.writer.begin() as connection:
        add_providers(connection, 1)
        allocate(connection, "c0", {(1, VCPU): 1})
        run(connection, *([] if "INSERT INTO inventories" in foreign_write else [stocking((1, VCPU), total=4)]))
    with writer(postgresql) as foreign, writer(postgresql) as ours:
        run(foreign, foreign_write)
        with must_wait():
            run(ours, "SELECT 1 FROM resource_providers WHERE id = 1 FOR NO KEY UPDATE")

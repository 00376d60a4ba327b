"""The triggers keep usage and capacity exact, whoever writes, and however; foreign writers go one at a time."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from placement.store.connection.database import Database
from placement.store.kept_usage import install, remove, triggers_in_place
from placement.store.lifecycle.maintenance import exclusively
from placement.store.locks import pass_write_gate
from tests.store.replayed import journal_rows
from tests.store.rows import (
    DISK_GB,
    MEMORY_MB,
    VCPU,
    add_providers,
    allocate,
    delete_provider,
    joined_stock,
    kept,
    kept_stock,
    run,
    stocking,
    summed,
)


def _insert(choice: random.Random) -> str:
    rows = [
        f"({choice.randint(1, 4)}, {choice.randint(0, 2)}, 'c{choice.randint(1, 5)}', {choice.randint(1, 9)})"
        for _ in range(choice.randint(1, 4))
    ]
    columns = "resource_provider_id, resource_class_id, consumer_id, used"
    return f"INSERT INTO allocations ({columns}) VALUES {', '.join(rows)}"


def _update(choice: random.Random) -> str:
    column = choice.choice(["resource_provider_id", "resource_class_id", "updated_at", "used"])
    value = {"used": "used + 3", "updated_at": "NULL"}.get(column, f"{choice.randint(1, 2)}")
    change = f"{column} = {value}"
    if column != "used" and choice.random() < 0.5:
        change += f", used = {choice.randint(1, 9)}"
    return f"UPDATE allocations SET {change} WHERE consumer_id = 'c{choice.randint(1, 5)}'"


def _delete(choice: random.Random) -> str:
    return f"DELETE FROM allocations WHERE consumer_id = 'c{choice.randint(1, 5)}'"


def _stock(choice: random.Random) -> str:
    spot = (choice.randint(1, 4), choice.randint(0, 2))
    return stocking(spot, total=choice.randint(1, 9), ratio=choice.choice(RATIOS))


def _restock(choice: random.Random) -> str:
    amounts = ["total = total + 2", "reserved = reserved + 1", "allocation_ratio = 1.5", "max_unit = 1"]
    change = choice.choice([*amounts, "resource_class_id = 10 + id"])
    provider = choice.randint(1, 4)
    return f"UPDATE inventories SET {change} WHERE resource_provider_id = {provider} AND resource_class_id < 2"


def _unstock(choice: random.Random) -> str:
    return f"DELETE FROM inventories WHERE resource_class_id = {choice.randint(0, 2)}"


def _move(choice: random.Random) -> str:
    root = choice.choice(["1", "2", "id", "NULL"])
    return f"UPDATE resource_providers SET root_provider_id = {root}, generation = 5 WHERE id < {choice.randint(1, 5)}"


# Halves and the like: MariaDB's FLOAT has single precision, so 0.9 is displayed as 0.9 but counts as 0.89999998.
RATIOS = (0.75, 1.0, 1.5, 16.0, 0.0)
STATEMENTS: list[Callable[[random.Random], str]] = [
    *[_insert, _insert, _update, _delete],
    *[_stock, _stock, _restock, _unstock, _move],
]


@pytest.mark.parametrize("seed", range(5))
def test_any_mix_of_statements_leaves_what_is_kept_exact(database: Database, seed: int) -> None:
    choice = random.Random(seed)
    with database.writer.begin() as connection:
        add_providers(connection, 4)
        for _ in range(120):
            statement = choice.choice(STATEMENTS)(choice)
            connection.execute(text(statement))
            assert kept_stock(connection) == joined_stock(connection), statement
            assert kept(connection) == summed(connection), statement


def test_sums_larger_than_an_integer_column_are_kept(database: Database) -> None:
    with database.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 2**31 - 1})
        allocate(connection, "c2", {(1, VCPU): 2**31 - 1})
        assert kept(connection) == {(1, VCPU): 2**32 - 2}


def test_a_deleted_provider_leaves_nothing_to_a_reused_id_but_allocations_that_outlive_it(database: Database) -> None:
    with database.writer.begin() as connection:
        add_providers(connection, 2)
        allocate(connection, "c1", {(1, VCPU): 5, (2, VCPU): 7})
        run(connection, "DELETE FROM allocations WHERE resource_provider_id = 2")
        for provider in (1, 2):
            delete_provider(connection, provider)
        rows = connection.execute(text("SELECT resource_provider_id, used FROM provider_usages")).all()
        assert [tuple(row) for row in rows] == [(1, 5)]
        run(connection, "DELETE FROM allocations")
        assert kept(connection) == {}


def test_what_is_there_is_counted_when_the_triggers_are_made(database: Database) -> None:
    with exclusively(database.engine) as connection:
        remove(connection)
        add_providers(connection, 2)
        allocate(connection, "c1", {(1, VCPU): 5, (2, DISK_GB): 1})
        run(connection, stocking((1, VCPU), total=8), stocking((2, MEMORY_MB), total=7, ratio=1.5))
        run(connection, "INSERT INTO provider_usages VALUES (9, 9, 9, NULL, NULL)")
        install(connection)
        allocate(connection, "c2", {(1, VCPU): 1, (1, MEMORY_MB): 2})
        assert kept(connection) == {(1, VCPU): 6, (1, MEMORY_MB): 2, (2, DISK_GB): 1}
        assert kept_stock(connection) == {(1, VCPU): (1, 8), (2, MEMORY_MB): (2, 10)}


def test_triggers_made_while_others_write_lose_nothing(database: Database) -> None:
    with database.writer.begin() as connection:
        remove(connection)
        add_providers(connection, 3)
    start = threading.Barrier(3)
    done = threading.Event()

    def write(seed: int) -> None:
        choice = random.Random(seed)
        start.wait()
        for number in range(200):
            with database.writer.begin() as connection:
                allocate(connection, f"c{seed}-{number}", {(choice.randint(1, 3), VCPU): choice.randint(1, 9)})
            if done.is_set() and number > 20:
                return

    writers = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    start.wait()
    with exclusively(database.engine) as connection:
        install(connection)
    done.set()
    for writer in writers:
        writer.join()
    with database.writer.begin() as connection:
        assert triggers_in_place(connection)
        assert summed(connection)
        assert kept(connection) == summed(connection)


def test_the_conflict_policy_of_a_statement_does_not_wipe_the_kept_usage(sqlite: Database) -> None:
    """SQLite applies the outer statement's conflict policy inside triggers."""
    with sqlite.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 5})
        run(
            connection,
            "INSERT OR REPLACE INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
            "VALUES (1, 0, 'c2', 4)",
        )
        assert kept(connection) == summed(connection) == {(1, VCPU): 9}


def test_truncated_tables_are_forgotten(postgresql: Database) -> None:
    with postgresql.writer.begin() as connection:
        add_providers(connection, 1)
        allocate(connection, "c1", {(1, VCPU): 5})
        run(connection, stocking((1, VCPU), total=8), "TRUNCATE inventories")
        assert (kept_stock(connection), kept(connection)) == ({}, {(1, VCPU): 5})
        run(connection, "TRUNCATE allocations")
        assert kept(connection) == {}


def test_copied_rows_are_counted(postgresql: Database) -> None:
    with postgresql.writer.begin() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        target = "allocations (resource_provider_id, resource_class_id, consumer_id, used)"
        with driver.cursor().copy(f"COPY {target} FROM STDIN") as copy:
            for number in range(100):
                copy.write_row((number % 3 + 1, 0, f"c{number}", 2))
        assert kept(connection) == {(1, VCPU): 68, (2, VCPU): 66, (3, VCPU): 66}


@pytest.mark.parametrize(
    "sabotage",
    [
        "ALTER TABLE allocations DISABLE TRIGGER provider_usages_inserted",
        "ALTER TABLE allocations DISABLE TRIGGER ALL",
        "DROP FUNCTION placement_keep_usage CASCADE",
        "CREATE OR REPLACE FUNCTION placement_keep_usage() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
    ],
)
def test_sabotage_is_noticed(postgresql: Database, sabotage: str) -> None:
    with postgresql.writer.begin() as connection:
        run(connection, sabotage)
        assert not triggers_in_place(connection)


def test_what_a_user_without_other_privileges_writes_is_counted_and_told_of(postgresql: Database) -> None:
    """The triggers must not break writes of users with few privileges or with another search path."""
    with postgresql.writer.connect() as connection:
        run(
            connection,
            "CREATE ROLE somebody",
            "GRANT INSERT ON allocations TO somebody",
            "GRANT USAGE ON SEQUENCE allocations_id_seq TO somebody",
            "SET LOCAL ROLE somebody",
            "SET LOCAL search_path = pg_catalog",
            "INSERT INTO public.allocations (resource_provider_id, resource_class_id, consumer_id, used) "
            "VALUES (1, 0, 'c', 5)",
            "RESET ROLE",
            "RESET search_path",
        )
        assert kept(connection) == {(1, VCPU): 5}
        assert journal_rows(connection)[-1].consumer_uuid == "c"
        connection.rollback()


def begin_to_write(connection: Connection) -> None:
    """Do what the reference does first, though it changes nothing yet."""
    run(connection, "DELETE FROM allocations WHERE consumer_id = 'new'")


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


@pytest.mark.parametrize(
    ("first", "second"),
    [(begin_to_write, begin_to_write), (pass_write_gate, begin_to_write), (begin_to_write, pass_write_gate)],
    ids=["foreign writers", "this server first", "a foreign writer first"],
)
def test_a_foreign_writer_and_whoever_else_writes_go_one_at_a_time(postgresql: Database, first, second) -> None:
    """Before either has locked anything."""
    with writer(postgresql) as earlier, writer(postgresql) as later:
        first(earlier)
        with must_wait():
            second(later)


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

"""The journal's rows, applied in order to empty tables, give the database, whoever wrote it and however."""

import random
from collections.abc import Callable

import pytest

from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from tests.store.replayed import assert_same, journal_rows, replayed, tables_of
from tests.store.rows import VCPU, add_providers, allocate, run, stocking
from tests.store.test_triggers import STATEMENTS

Statement = Callable[[random.Random], str]


def _consume(choice: random.Random) -> str:
    number = choice.randint(1, 5)
    return (
        "INSERT INTO consumers (uuid, project_id, user_id, generation) "
        f"SELECT 'c{number}', {choice.randint(1, 3)}, 1, 0 WHERE NOT EXISTS "
        f"(SELECT 1 FROM consumers WHERE uuid = 'c{number}')"
    )


def _own(choice: random.Random) -> str:
    change = choice.choice(["generation = generation + 1", "project_id = 2", "user_id = 7", "updated_at = NULL"])
    return f"UPDATE consumers SET {change} WHERE uuid = 'c{choice.randint(1, 5)}'"


def _leave(choice: random.Random) -> str:
    return f"DELETE FROM consumers WHERE uuid = 'c{choice.randint(1, 5)}'"


def _mark(choice: random.Random) -> str:
    kind = choice.choice(["trait", "aggregate"])
    table, column = f"resource_provider_{kind}s", f"{kind}_id"
    number, provider = choice.randint(1, 3), choice.randint(1, 4)
    if choice.random() < 0.4:
        return f"DELETE FROM {table} WHERE {column} = {number}"
    return (
        f"INSERT INTO {table} ({column}, resource_provider_id) SELECT {number}, {provider} WHERE NOT EXISTS "
        f"(SELECT 1 FROM {table} WHERE {column} = {number} AND resource_provider_id = {provider})"
    )


def _rename(choice: random.Random) -> str:
    name = choice.choice(["Node", "node", "a \"quoted\" \\ name, it''s", "ναός"])
    number = choice.randint(1, 4)
    return f"UPDATE resource_providers SET name = '{name} {number}', generation = generation + 1 WHERE id = {number}"


def _advance(choice: random.Random) -> str:
    return f"UPDATE resource_providers SET generation = generation + 1 WHERE id <= {choice.randint(1, 4)}"


EVERY: list[Statement] = [*STATEMENTS, _consume, _consume, _own, _leave, _mark, _mark, _rename, _advance]


@pytest.mark.parametrize("seed", range(4))
def test_any_mix_of_statements_can_be_replayed(migrated: Database, seed: int) -> None:
    choice = random.Random(seed)
    with migrated.writer.begin() as connection:
        add_providers(connection, 4)
        for number in range(120):
            statement = choice.choice(EVERY)(choice)
            connection.exec_driver_sql(statement.replace("%", "%%"))
            if number % 10 == 9:
                assert_same(replayed(journal_rows(connection)), tables_of(connection))
        actions = {(row.kind, row.action) for row in journal_rows(connection)}
    assert {("allocation", "changed"), ("provider", "changed"), ("generation", "changed")} < actions


def test_a_row_tells_what_changed_and_by_how_much(migrated: Database) -> None:
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
        run(
            connection,
            "INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES ('c1', 4, 5, 1)",
            stocking((1, VCPU), total=8),
        )
        allocate(connection, "c1", {(1, VCPU): 5})
        run(connection, "UPDATE allocations SET used = 3", "DELETE FROM allocations")
        rows = [row for row in journal_rows(connection) if row.kind in {"allocation", "inventory"}]
    assert [(row.kind, row.action, row.old_amount, row.new_amount) for row in rows] == [
        ("inventory", "created", None, 8),
        ("allocation", "created", None, 5),
        ("allocation", "changed", 5, 3),
        ("allocation", "deleted", 3, None),
    ]
    assert {(row.provider_uuid, row.root_provider_id, row.resource_class_id) for row in rows} == {
        ("provider-1", 1, VCPU)
    }
    assert {(row.consumer_uuid, row.project_id, row.user_id) for row in rows[1:]} == {("c1", 4, 5)}
    assert {row.request_id for row in rows} == {None}


def test_without_a_journal_nothing_is_written(migrated: Database) -> None:
    schema.upgrade(migrated.engine, keep_journal=False)
    assert not schema.current(migrated.engine).keeps_journal
    with migrated.writer.begin() as connection:
        before = len(journal_rows(connection))
        add_providers(connection, 1)
        assert len(journal_rows(connection)) == before
    schema.upgrade(migrated.engine)
    assert schema.current(migrated.engine).keeps_journal
    with migrated.writer.begin() as connection:
        assert [row.action for row in journal_rows(connection)][-1] == "began"


def test_emptied_tables_end_what_can_be_replayed(postgresql: Database) -> None:
    with postgresql.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 5})
        run(connection, "TRUNCATE allocations")
        row = journal_rows(connection)[-1]
    assert (row.kind, row.action) == ("journal", "began")


def test_a_user_who_may_write_nothing_but_allocations_is_told_of(postgresql: Database) -> None:
    with postgresql.writer.connect() as connection:
        run(
            connection,
            "CREATE ROLE scribe",
            "GRANT INSERT ON allocations TO scribe",
            "GRANT USAGE ON SEQUENCE allocations_id_seq TO scribe",
            "SET LOCAL ROLE scribe",
            "SET LOCAL search_path = pg_catalog",
            "INSERT INTO public.allocations (resource_provider_id, resource_class_id, consumer_id, used) "
            "VALUES (1, 0, 'c', 5)",
            "RESET ROLE",
            "RESET search_path",
        )
        assert journal_rows(connection)[-1].consumer_uuid == "c"
        connection.rollback()

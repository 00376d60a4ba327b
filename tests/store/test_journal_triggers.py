"""The journal's rows, applied in order to empty tables, give the database, whoever wrote it and however."""

import random
from collections.abc import Callable

import pytest

from placement.domain.identity import Identity, ServedRequest
from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from tests.rows_of_a_cloud import fill
from tests.store.replayed import assert_same, journal_rows, replayed, tables_of
from tests.store.rows import VCPU, add_providers, allocate, by_request, run
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
        rows = journal_rows(connection)
    actions = {(row.kind, row.action) for row in rows}
    assert {("allocation", "changed"), ("provider", "changed"), ("generation", "changed")} < actions
    assert {row.request_id for row in rows} == {None}


CALLER = Identity("o'brien\\'; DROP TABLE users; --\x1f\0", "Zo\u00eb")
REQUEST = ServedRequest("req-1", identity=CALLER, route="PUT /allocations/<consumer_uuid>")


def test_every_row_of_a_request_tells_whose_it_is_and_none_that_comes_after_it(migrated: Database) -> None:
    with migrated.writer.begin() as connection:
        before = len(journal_rows(connection))
    with by_request(REQUEST):
        fill(migrated)
    with migrated.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 5})
        told = [(row.request_id, row.by_user, row.by_project, row.route) for row in journal_rows(connection)[before:]]
    assert len(told) > 10
    own = ("req-1", "o'brien'; DROP TABLE users; --", "Zo\u00eb", "PUT /allocations/<consumer_uuid>")
    assert ({*told[:-1]}, told[-1]) == ({own}, (None, None, None, None))


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

"""The journal's rows, applied to empty tables in order, give the database; old triggers are renewed."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from placement.domain.identity import Identity, ServedRequest
from placement.store.checks import schema_check
from placement.store.checks.schema_check import Owner
from placement.store.connection.database import Database
from placement.store.journal.triggers import SETS, bring_up_to_date, remove, triggers_in_place
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively
from placement.store.trigger_set import TriggerSet
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
def test_any_mix_of_statements_can_be_replayed(database: Database, seed: int) -> None:
    choice = random.Random(seed)
    with database.writer.begin() as connection:
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


def test_every_row_of_a_request_tells_whose_it_is_and_none_that_comes_after_it(database: Database) -> None:
    with database.writer.begin() as connection:
        before = len(journal_rows(connection))
    with by_request(REQUEST):
        fill(database)
    with database.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 5})
        told = [(row.request_id, row.by_user, row.by_project, row.route) for row in journal_rows(connection)[before:]]
    assert len(told) > 10
    own = ("req-1", "o'brien'; DROP TABLE users; --", "Zo\u00eb", "PUT /allocations/<consumer_uuid>")
    assert ({*told[:-1]}, told[-1]) == ({own}, (None, None, None, None))


def test_without_a_journal_nothing_is_written(database: Database) -> None:
    schema.upgrade(database.engine, keep_journal=False)
    assert not schema.current(database.engine).keeps_journal
    with database.writer.begin() as connection:
        before = len(journal_rows(connection))
        add_providers(connection, 1)
        assert len(journal_rows(connection)) == before
    schema.upgrade(database.engine)
    assert schema.current(database.engine).keeps_journal
    with database.writer.begin() as connection:
        assert [row.action for row in journal_rows(connection)][-1] == "began"


def test_emptied_tables_end_what_can_be_replayed(postgresql: Database) -> None:
    with postgresql.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 5})
        run(connection, "TRUNCATE allocations")
        row = journal_rows(connection)[-1]
    assert (row.kind, row.action) == ("journal", "began")


def drop_trigger(connection: Connection) -> None:
    on_table = " ON consumers" if connection.dialect.name == "postgresql" else ""
    run(connection, f"DROP TRIGGER placement_journal_consumers_updated{on_table}")


def of_an_earlier_release(connection: Connection) -> TriggerSet:
    """Create triggers with the same effect but another text, and return them."""
    ours = SETS[connection.dialect.name]
    functions = {name: body.replace("RETURN NULL", "RETURN  NULL") for name, body in ours.functions.items()}
    triggers = [replace(each, body=each.body.replace("INSERT INTO", "INSERT  INTO")) for each in ours.triggers]
    earlier = TriggerSet(triggers, functions)
    remove(connection)
    earlier.create(connection)
    return earlier


def test_the_journal_goes_on_after_triggers_of_an_earlier_release(database: Database) -> None:
    with exclusively(database.engine) as connection:
        earlier = of_an_earlier_release(connection)
        known = {earlier.fingerprint(database.dialect)}
    with database.writer.begin() as connection:
        add_providers(connection, 2)
        began = [row.id for row in journal_rows(connection) if row.action == "began"]
    with exclusively(database.engine) as connection:
        assert not triggers_in_place(connection)
        bring_up_to_date(connection, known)
        assert triggers_in_place(connection)
    with database.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 1})
        rows = journal_rows(connection)
        assert [row.id for row in rows if row.action == "began"] == began
        assert_same(replayed(rows), tables_of(connection))


@pytest.mark.parametrize("broken", ["missing", "unknown"])
def test_the_journal_begins_anew_where_nobody_knows_what_was_written(database: Database, broken: str) -> None:
    with exclusively(database.engine) as connection:
        earlier = of_an_earlier_release(connection)
        known = {earlier.fingerprint(database.dialect)} if broken == "missing" else {"another"}
        if broken == "missing":
            drop_trigger(connection)
        bring_up_to_date(connection, known)
        assert triggers_in_place(connection)
        assert journal_rows(connection)[-1].action == "began"


@pytest.mark.parametrize(
    ("dialect", "fingerprint"),
    [("postgresql", "07df45cc4999c579"), ("sqlite", "125ab7969d94196b"), ("mysql", "70e6a9dddb6d068f")],
    ids=["postgresql", "sqlite", "mariadb"],
)
def test_triggers_are_those_that_the_next_release_will_know(dialect: str, fingerprint: str) -> None:
    """Whoever changes them puts the new fingerprint here, and this one into EARLIER if rows keep their meaning."""
    assert SETS[dialect].fingerprint(dialect) == fingerprint


OWNER = Owner("p", "u")
WHAT = "things that are not as the journal tells"
FORGERIES = [
    ("new_amount = 77", "allocation"),
    ("action = 'deleted'", "trait"),
    ("generation = 9", "consumer"),
    ("new_amount = 77", "inventory"),
    ("object_id = 77", "aggregate"),
    ("action = 'deleted'", "class_name"),
    ("object_id = 7777", "trait_name"),
    ("provider_uuid = 'other'", "provider', 'generation"),
]


def faults(database: Database) -> list[str]:
    """Return what the check says is wrong."""
    return [finding.description for finding in schema_check.check(database.engine)]


@pytest.mark.parametrize(("forgery", "kinds"), FORGERIES)
def test_an_untrue_row_is_found_and_the_journal_begins_anew(database: Database, forgery: str, kinds: str) -> None:
    fill(database)
    assert faults(database) == []
    with database.writer.begin() as connection:
        run(connection, f"UPDATE placement_journal SET {forgery} WHERE kind IN ('{kinds}')")
    assert faults(database) == [WHAT]
    (finding,) = schema_check.repair(database.engine, OWNER)
    assert (finding.description, finding.repaired) == (WHAT, True)
    assert faults(database) == []


def test_what_was_changed_without_triggers_is_forgiven_after_they_are_made_again(database: Database) -> None:
    fill(database)
    schema.upgrade(database.engine, keep_journal=False)
    assert faults(database) == []
    fill(database, prefix="silent")
    with database.writer.begin() as connection:
        run(connection, "UPDATE allocations SET used = 1")
    schema.upgrade(database.engine)
    assert faults(database) == []


def test_a_missing_trigger_is_found(database: Database) -> None:
    with database.writer.begin() as connection:
        drop_trigger(connection)
    assert faults(database) == [WHAT]
    schema_check.repair(database.engine, OWNER)
    assert faults(database) == []

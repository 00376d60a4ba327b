"""Triggers of an earlier release are replaced and the journal continues; after any other triggers it starts anew."""

from dataclasses import replace

import pytest
from sqlalchemy import Connection

from placement.store.connection.database import Database
from placement.store.journal.triggers import SETS, bring_up_to_date, remove, triggers_in_place
from placement.store.lifecycle.maintenance import exclusively
from placement.store.trigger_set import TriggerSet
from tests.store.replayed import assert_same, journal_rows, replayed, tables_of
from tests.store.rows import VCPU, add_providers, allocate, run


def of_an_earlier_release(connection: Connection) -> TriggerSet:
    """Create triggers with the same effect but another text, and return them."""
    ours = SETS[connection.dialect.name]
    functions = {name: body.replace("RETURN NULL", "RETURN  NULL") for name, body in ours.functions.items()}
    triggers = [replace(one, body=one.body.replace("INSERT INTO", "INSERT  INTO")) for one in ours.triggers]
    earlier = TriggerSet(triggers, functions)
    remove(connection)
    earlier.create(connection)
    return earlier


def test_the_journal_goes_on_after_triggers_of_an_earlier_release(migrated: Database) -> None:
    with exclusively(migrated.engine) as connection:
        earlier = of_an_earlier_release(connection)
        known = {earlier.fingerprint(migrated.dialect)}
    with migrated.writer.begin() as connection:
        add_providers(connection, 2)
        began = [row.id for row in journal_rows(connection) if row.action == "began"]
    with exclusively(migrated.engine) as connection:
        assert not triggers_in_place(connection)
        bring_up_to_date(connection, known)
        assert triggers_in_place(connection)
    with migrated.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 1})
        rows = journal_rows(connection)
        assert [row.id for row in rows if row.action == "began"] == began
        assert_same(replayed(rows), tables_of(connection))


@pytest.mark.parametrize("broken", ["missing", "unknown"])
def test_the_journal_begins_anew_where_nobody_knows_what_was_written(migrated: Database, broken: str) -> None:
    with exclusively(migrated.engine) as connection:
        earlier = of_an_earlier_release(connection)
        known = {earlier.fingerprint(migrated.dialect)} if broken == "missing" else {"another"}
        if broken == "missing":
            on_table = " ON consumers" if migrated.dialect == "postgresql" else ""
            run(connection, f"DROP TRIGGER placement_journal_consumers_updated{on_table}")
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

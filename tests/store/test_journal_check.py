"""``placement db check`` compares the journal with the tables."""

import pytest

from placement.store.checks import schema_check
from placement.store.checks.schema_check import Owner
from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from tests.rows_of_a_cloud import fill
from tests.store.rows import run

OWNER = Owner("p", "u")
WHAT = "things that are not as the journal tells"
FORGERIES = [
    "UPDATE placement_journal SET new_amount = 77 WHERE kind = 'allocation'",
    "UPDATE placement_journal SET action = 'deleted' WHERE kind = 'trait'",
    "UPDATE placement_journal SET generation = 9 WHERE kind = 'consumer'",
    "UPDATE placement_journal SET new_amount = 77 WHERE kind = 'inventory'",
    "UPDATE placement_journal SET object_id = 77 WHERE kind = 'aggregate'",
    "UPDATE placement_journal SET action = 'deleted' WHERE kind = 'class_name'",
    "UPDATE placement_journal SET object_id = 7777 WHERE kind = 'trait_name'",
    "UPDATE placement_journal SET provider_uuid = 'other' WHERE kind IN ('provider', 'generation')",
]


def found(database: Database) -> list[str]:
    return [finding.description for finding in schema_check.check(database.engine)]


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_row_that_is_not_true_is_found_and_the_journal_begins_anew(migrated: Database, forgery: str) -> None:
    fill(migrated)
    assert found(migrated) == []
    with migrated.writer.begin() as connection:
        run(connection, forgery)
    assert found(migrated) == [WHAT]
    (finding,) = schema_check.repair(migrated.engine, OWNER)
    assert (finding.description, finding.repaired) == (WHAT, True)
    assert found(migrated) == []


def test_what_was_changed_without_triggers_is_forgiven_after_they_are_made_again(migrated: Database) -> None:
    fill(migrated)
    schema.upgrade(migrated.engine, keep_journal=False)
    assert found(migrated) == []
    fill(migrated, prefix="silent")
    with migrated.writer.begin() as connection:
        run(connection, "UPDATE allocations SET used = 1")
    schema.upgrade(migrated.engine)
    assert found(migrated) == []


def test_a_missing_trigger_is_found(migrated: Database) -> None:
    with migrated.writer.begin() as connection:
        on_table = " ON consumers" if migrated.dialect == "postgresql" else ""
        run(connection, f"DROP TRIGGER placement_journal_consumers_updated{on_table}")
    assert found(migrated) == [WHAT]
    schema_check.repair(migrated.engine, OWNER)
    assert found(migrated) == []

"""What is cached of the cloud is compared with the tables in the background, for what goes past the triggers."""

import logging

import pytest
from sqlalchemy import Connection

from placement.services.cloud_cache import compare_some
from placement.services.health import readiness
from placement.store.checks import schema_check
from placement.store.checks.schema_check import Owner
from placement.store.connection.database import Database
from tests.store.rows import VCPU, add_hosts, making, run
from tests.store.snapshots import cached_order, order_as_read, used_of_the_first

CHANGES = {
    "an allocation": "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
    f"VALUES (1, {VCPU}, 'unnoticed', 9)",
    "an inventory": "UPDATE inventories SET total = 2 WHERE resource_provider_id = 1",
    "a rule": "UPDATE inventories SET max_unit = 2 WHERE resource_provider_id = 1",
    "a move": "UPDATE resource_providers SET root_provider_id = 2, parent_provider_id = 2 WHERE id = 1",
    "a new provider": making(9, root=9),
}


@pytest.fixture
def cloud(migrated: Database) -> Database:
    """Some providers of VCPUs, on a database of each of the three kinds."""
    add_hosts(migrated, 3)
    return migrated


def write_unnoticed(connection: Connection, statement: str) -> None:
    """Write so that the journal has nothing of it."""
    newest = connection.exec_driver_sql("SELECT max(id) FROM placement_journal").scalar_one()
    run(connection, statement, f"DELETE FROM placement_journal WHERE id > {newest}")


def drops_of(database: Database) -> list[str]:
    drops: list[str] = []
    database.on_event = lambda event, cause: event == "drop" and drops.append(cause)
    return drops


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES)
def test_a_tree_that_is_not_as_the_tables_have_it_ends_all_caches(
    cloud: Database, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    drops = drops_of(cloud)
    assert cached_order(cloud) == order_as_read(cloud)
    compare_some(cloud)
    with cloud.writer.begin() as connection:
        write_unnoticed(connection, statement)
    for _ in range(3):
        compare_some(cloud)
        assert cached_order(cloud) == order_as_read(cloud)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert (drops, len(errors)) == (["difference"], 1)
    assert cloud.keeps_usage


def test_usage_that_is_kept_wrongly_is_summed_until_it_is_counted_afresh(postgresql: Database) -> None:
    """A session that replicates fires no triggers."""
    drops = drops_of(postgresql)
    add_hosts(postgresql, 3)
    assert cached_order(postgresql) == order_as_read(postgresql)
    with postgresql.writer.begin() as connection:
        run(connection, "SET LOCAL session_replication_role = replica", CHANGES["an allocation"])
    compare_some(postgresql)
    assert readiness(postgresql).triggers is not None
    assert (postgresql.keeps_usage, drops) == (False, ["difference"])
    assert used_of_the_first(postgresql) == 9
    assert cached_order(postgresql) == order_as_read(postgresql)
    assert [finding.description for finding in schema_check.check(postgresql.engine)][-1:] == [
        "wrong kept usage or capacity"
    ]
    schema_check.repair(postgresql.engine, Owner("p", "u"))
    assert readiness(postgresql).triggers is not None
    assert postgresql.keeps_usage
    assert used_of_the_first(postgresql) == 9

"""Nothing is served from what followed the journal while its triggers may have missed something; a check finds it."""

import logging
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from sqlalchemy import Connection, text

from placement.services.cloud_cache import compare_some
from placement.services.health import readiness
from placement.store import kept_usage
from placement.store.checks import schema_check
from placement.store.checks.schema_check import Owner
from placement.store.connection.database import Database
from placement.store.journal import triggers as journal
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively
from tests.conftest import KINDS
from tests.databases import open_database, opened_database
from tests.store.rows import VCPU, add_hosts, allocate, making, run
from tests.store.snapshots import cached_order, order_as_read, used_of_the_first

Bypass = Callable[[Connection, Callable[[], None]], None]
"""Has the triggers miss what the function does, which writes on the same connection."""


def _removed(connection: Connection, write: Callable[[], None]) -> None:
    journal.remove(connection)
    kept_usage.remove(connection)
    write()


def _removed_meanwhile(connection: Connection, write: Callable[[], None]) -> None:
    _removed(connection, write)
    journal.resume(connection)
    kept_usage.install(connection)


def _one_removed(connection: Connection, write: Callable[[], None]) -> None:
    on_table = " ON allocations" if connection.dialect.name == "postgresql" else ""
    run(connection, f"DROP TRIGGER placement_journal_allocations_inserted{on_table}")
    write()


def _altered(connection: Connection, write: Callable[[], None], *, tables: str, back: bool) -> None:
    for table in tables.split():
        run(connection, f"ALTER TABLE {table} DISABLE TRIGGER USER")
    write()
    for table in tables.split() if back else ():
        run(connection, f"ALTER TABLE {table} ENABLE TRIGGER USER")


EVERYWHERE = {"removed": _removed, "removed meanwhile": _removed_meanwhile, "one removed": _one_removed}
ON_POSTGRESQL = {
    "disabled": partial(_altered, tables="allocations inventories resource_providers", back=False),
    "disabled meanwhile": partial(_altered, tables="allocations inventories resource_providers", back=True),
    "of one table disabled meanwhile": partial(_altered, tables="allocations", back=True),
}
CASES = [pytest.param("postgresql", bypass, id=f"postgresql-{name}") for name, bypass in ON_POSTGRESQL.items()]
CASES += [
    pytest.param(kind, bypass, id=f"{kind}-{name}", marks=[pytest.mark.mariadb] * (kind == "mariadb"))
    for kind in ("sqlite", "postgresql", "mariadb")
    for name, bypass in EVERYWHERE.items()
]


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> Iterator[list[Database]]:
    """A database of three providers, as two servers opened it."""
    url = request.getfixturevalue(f"{request.param}_url")
    both = [open_database(url) for _ in range(2)]
    add_hosts(both[0], 3)
    yield both
    for database in both:
        database.dispose()


def look_at_triggers_now(databases: list[Database]) -> None:
    """Do not wait until they are looked up again, on MariaDB."""
    for database in databases:
        database.triggers_known_until = 0.0


def write_unnoticed(databases: list[Database], bypass: Bypass) -> None:
    """Allocate past the triggers while an administrator changes them, and have servers look at them at once."""
    with exclusively(databases[0].engine) as connection:
        bypass(connection, lambda: allocate(connection, "unnoticed", {(1, VCPU): 9}))
    look_at_triggers_now(databases)


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize(("servers", "bypass"), CASES, indirect=["servers"])
def test_what_triggers_have_missed_is_in_every_answer(servers: list[Database], bypass: Bypass, is_warm: bool) -> None:
    """Two servers, with warm caches, or which have only counted for claims."""
    assert [used_of_the_first(database) for database in servers] == [0, 0]
    for database in servers if is_warm else ():
        assert cached_order(database) == order_as_read(database)
    write_unnoticed(servers, bypass)
    assert [used_of_the_first(database) for database in servers] == [9, 9]
    with opened_database(servers[0].engine.url.render_as_string(hide_password=False)) as plain:
        plain.keeps_usage = False
        for database in servers:
            assert cached_order(database) in (None, order_as_read(plain))


@pytest.mark.parametrize(("servers", "bypass"), CASES, indirect=["servers"])
def test_an_upgrade_makes_up_for_what_triggers_have_missed(servers: list[Database], bypass: Bypass) -> None:
    assert cached_order(servers[1]) is not None
    write_unnoticed(servers[:1], bypass)
    schema.upgrade(servers[0].engine)
    assert readiness(servers[1]).triggers is not None
    assert (servers[1].keeps_usage, servers[1].keeps_journal) == (True, True)
    assert cached_order(servers[1]) == order_as_read(servers[1])
    assert used_of_the_first(servers[1]) == 9


@pytest.mark.parametrize("servers", KINDS, indirect=True)
def test_without_a_journal_nothing_is_cached(servers: list[Database]) -> None:
    """Its triggers are removed by an upgrade, while servers run."""
    for database in servers:
        assert cached_order(database) is not None
    schema.upgrade(servers[0].engine, keep_journal=False)
    look_at_triggers_now(servers)
    for database in servers:
        assert cached_order(database) is None
        assert (database.keeps_usage, database.keeps_journal) == (True, False)


@pytest.mark.parametrize("servers", ["postgresql"], indirect=True)
def test_triggers_that_were_disabled_are_not_in_place_once_they_are_enabled(servers: list[Database]) -> None:
    """Whatever looks at them, also a server that is started later: the sums may lack something."""
    (database, _other) = servers
    with database.engine.begin() as connection:
        run(connection, "ALTER TABLE allocations DISABLE TRIGGER USER", "ALTER TABLE allocations ENABLE TRIGGER USER")
    state = schema.current(database.engine)
    assert (state.keeps_usage, state.keeps_journal) == (False, False)
    schema.upgrade(database.engine)
    with database.reader.connect() as connection:
        newest = "SELECT action FROM placement_journal ORDER BY id DESC LIMIT 1"
        assert connection.execute(text(newest)).scalar_one() == "began"


CHANGES = {
    "an allocation": "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
    f"VALUES (1, {VCPU}, 'unnoticed', 9)",
    "an inventory": "UPDATE inventories SET total = 2 WHERE resource_provider_id = 1",
    "a rule": "UPDATE inventories SET max_unit = 2 WHERE resource_provider_id = 1",
    "a move": "UPDATE resource_providers SET root_provider_id = 2, parent_provider_id = 2 WHERE id = 1",
    "a new provider": making(9, root=9),
}


@pytest.fixture
def cloud(database: Database) -> Database:
    """Some providers of VCPUs, on a database of each of the three kinds."""
    add_hosts(database, 3)
    return database


def write_past_the_journal(connection: Connection, statement: str) -> None:
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
        write_past_the_journal(connection, statement)
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

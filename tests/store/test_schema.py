"""Creating, upgrading and handing back a database; what must not be touched is refused."""

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import os_resource_classes
import os_traits
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from placement.errors import Unavailable
from placement.settings import DatabaseSettings
from placement.store.connection.database import Database
from placement.store.kept_usage import remove, triggers_in_place
from placement.store.lifecycle import opening, reference_schema, schema
from placement.store.lifecycle.maintenance import MaintenanceFailed, Patience, exclusively
from placement.store.lifecycle.reference_schema import SchemaRefused, sync_standard_names
from placement.store.lifecycle.schema import known_revisions
from placement.store.tables import REFERENCE_TABLES, VERSION_TABLE
from placement.store.trigger_set import missing_grant
from tests.databases import opened_database
from tests.mariadb import MariaDB, weak_user
from tests.store.rows import VCPU, add_providers, allocate, kept, kept_stock, run, stocking
from tests.upgrades import differences, downgrade, upgraded_at_once


@pytest.fixture
def empty(empty_database_url: str) -> Iterator[Database]:
    """A database without tables, opened."""
    with opened_database(empty_database_url) as opened:
        yield opened


def tables(database: Database) -> set[str]:
    return set(inspect(database.engine).get_table_names())


def test_an_empty_database_gets_exactly_the_tables_that_the_code_knows(empty: Database) -> None:
    schema.upgrade(empty.engine)
    assert differences(empty) == []


def test_servers_that_start_together_upgrade_once(empty: Database) -> None:
    steps = upgraded_at_once([empty.engine] * 4)
    assert len(steps) == len(set(steps)) > 0
    assert schema.current(empty.engine).keeps_usage


def test_missing_triggers_are_made_again_with_a_fresh_count_and_upgrading_again_changes_nothing(
    database: Database,
) -> None:
    """SQLite loses them when a tool rebuilds the table."""
    with exclusively(database.engine) as connection:
        remove(connection)
        add_providers(connection, 1)
        allocate(connection, "c1", {(1, VCPU): 5})
    assert not schema.current(database.engine).keeps_usage
    schema.upgrade(database.engine)
    steps: list[str] = []
    assert schema.upgrade(database.engine, steps.append) == ()
    assert steps == []
    with database.writer.begin() as connection:
        assert triggers_in_place(connection)
        assert kept(connection) == {(1, VCPU): 5}


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004"])
def test_a_database_of_an_earlier_release_is_brought_up_to_date(database: Database, revision: str) -> None:
    with exclusively(database.engine) as connection:
        downgrade(connection, revision)
        add_providers(connection, 1)
        allocate(connection, "c1", {(1, VCPU): 5})
        run(connection, stocking((1, VCPU), total=8))
    assert schema.current(database.engine).revision == revision
    assert schema.upgrade(database.engine) == ()
    assert schema.current(database.engine).is_up_to_date
    with database.writer.begin() as connection:
        assert (kept(connection), kept_stock(connection)) == ({(1, VCPU): 5}, {(1, VCPU): (1, 8)})


def test_release_leaves_what_the_reference_knows_and_its_data(database: Database) -> None:
    with database.writer.begin() as connection:
        add_providers(connection, 1)
        allocate(connection, "c1", {(1, VCPU): 5})
    assert schema.release(database.engine) is True
    assert tables(database) == {table.name for table in REFERENCE_TABLES} | {"alembic_version"}
    with database.writer.begin() as connection:
        run(connection, "UPDATE allocations SET used = 6", "DELETE FROM allocations")
        assert reference_schema.revision(connection) == "a082b8bb98d0"
        assert not triggers_in_place(connection)
    assert schema.release(database.engine) is False


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE alembic_version SET version_num = 'f00dfeed0000'", "f00dfeed0000"),
        ("DELETE FROM alembic_version", "placement-manage db stamp a082b8bb98d0"),
    ],
    ids=["newer", "of unknown age"],
)
def test_tables_of_a_reference_that_is_not_known_are_refused_unchanged(
    database: Database, statement: str, sentence: str
) -> None:
    schema.release(database.engine)
    with database.writer.begin() as connection:
        run(connection, statement)
    with pytest.raises(SchemaRefused, match=sentence):
        schema.upgrade(database.engine)
    assert "provider_usages" not in tables(database)
    schema.stamp(database.engine, "head")
    assert schema.upgrade(database.engine) == ()


@pytest.mark.parametrize("work", [schema.upgrade, schema.release])
def test_a_database_of_a_newer_release_of_this_server_is_refused(database: Database, work) -> None:
    with database.writer.begin() as connection:
        run(connection, "UPDATE placement_server_version SET version_num = '9999'")
    with pytest.raises(SchemaRefused, match="newer release"):
        work(database.engine)
    assert "provider_usages" in tables(database)


def test_a_database_of_another_application_is_refused_unchanged(empty: Database) -> None:
    with empty.writer.begin() as connection:
        run(connection, "CREATE TABLE users (id INTEGER PRIMARY KEY, email VARCHAR(99))")
    with pytest.raises(SchemaRefused, match="a table users of another application"):
        schema.upgrade(empty.engine)
    assert tables(empty) == {"users"}


@pytest.mark.parametrize("given", ["nonsense", "", "b"])
def test_stamping_with_an_unknown_or_ambiguous_revision_is_refused(empty_sqlite_url: str, given: str) -> None:
    with opened_database(empty_sqlite_url) as database, pytest.raises(SchemaRefused, match="Can't locate revision"):
        schema.stamp(database.engine, given)


def test_standard_names_are_those_of_the_reference_with_its_ids_of_classes(database: Database) -> None:
    with database.engine.connect() as connection:
        rows = connection.execute(text("SELECT id, name FROM resource_classes ORDER BY id")).all()
        traits = {*connection.execute(text("SELECT name FROM traits")).scalars()}
    assert [tuple(row) for row in rows] == [*enumerate(os_resource_classes.STANDARDS)]
    assert traits == {*os_traits.get_traits()}


def test_missing_standard_names_are_added_by_eight_at_once_without_touching_others(database: Database) -> None:
    with database.writer.begin() as connection:
        run(
            connection,
            "DELETE FROM traits WHERE name LIKE 'HW_%'",
            "DELETE FROM resource_classes WHERE name IN ('VCPU', 'DISK_GB')",
            "INSERT INTO resource_classes (id, name) VALUES (10000, 'CUSTOM_GOLD')",
        )
    start = threading.Barrier(8)

    def server(_number: int) -> None:
        start.wait()
        with database.writer.begin() as connection:
            sync_standard_names(connection)

    with ThreadPoolExecutor(8) as servers:
        assert len([*servers.map(server, range(8))]) == 8
    with database.engine.connect() as connection:
        found = connection.execute(text("SELECT id FROM resource_classes WHERE name IN ('VCPU', 'CUSTOM_GOLD')"))
        assert sorted(found.scalars()) == [0, 10000]
        assert connection.execute(text("SELECT COUNT(*) FROM traits")).scalar_one() == len(os_traits.get_traits())


def test_the_revisions_are_those_that_alembic_finds() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.migrations()))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    newest, older = known_revisions()
    assert newest == scripts.get_current_head()
    assert {newest, *older} == {script.revision for script in scripts.walk_revisions()}


@pytest.mark.parametrize(
    ("revision", "warns"), [(None, True), (min(known_revisions()[1]), True), ("of a later release", False)]
)
def test_a_server_warns_at_start_of_a_schema_that_it_is_too_new_for(
    sqlite_url: str, caplog: pytest.LogCaptureFixture, revision: str | None, *, warns: bool
) -> None:
    settings = DatabaseSettings(connection=sqlite_url)
    with opening.open_database(settings).engine.begin() as connection:
        inserted = [f"INSERT INTO {VERSION_TABLE} VALUES ('{revision}')"] if revision else []
        run(connection, f"DELETE FROM {VERSION_TABLE}", *inserted)
    caplog.clear()
    opening.open_database(settings)
    assert ("the server is not ready" in caplog.text and "run 'placement db upgrade'" in caplog.text) is warns


def test_a_database_that_cannot_be_reached_is_told_in_one_sentence_without_the_password(tmp_path) -> None:
    nowhere = opened_database(f"postgresql://u:s3cr3t@/db?host={tmp_path}")
    with nowhere as database, pytest.raises(Unavailable, match="cannot be reached") as caught:
        schema.upgrade(database.engine)
    assert "\n" not in caught.value.message
    assert "s3cr3t" not in caught.value.message


def test_a_table_that_stays_locked_ends_the_upgrade_with_a_sentence(postgresql: Database) -> None:
    schema.release(postgresql.engine)
    with postgresql.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 1})
        with pytest.raises(Unavailable, match="nothing was changed; try again"):
            schema.upgrade(postgresql.engine, patience=Patience(lock_s=0.1))
    assert "provider_usages" not in tables(postgresql)
    schema.upgrade(postgresql.engine)
    with postgresql.writer.begin() as connection:
        assert kept(connection) == {(1, VCPU): 1}


def test_a_user_who_may_not_make_tables_is_told_so(postgresql: Database) -> None:
    schema.release(postgresql.engine)
    with postgresql.writer.begin() as connection:
        run(connection, "CREATE ROLE guest LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    as_guest = postgresql.engine.url.set(username="guest").render_as_string(hide_password=False)
    with opened_database(as_guest) as guest, pytest.raises(MaintenanceFailed, match="permission denied"):
        schema.upgrade(guest.engine)
    with postgresql.writer.begin() as connection:
        run(connection, "DROP OWNED BY guest", "DROP ROLE guest")


@pytest.mark.mariadb
def test_where_mariadb_refuses_triggers_the_upgrade_names_the_grant_and_later_makes_them(
    mariadb_server: MariaDB, empty_mariadb_url: str
) -> None:
    with weak_user(mariadb_server, empty_mariadb_url) as url, opened_database(url) as weak:
        notes = schema.upgrade(weak.engine)
        assert ["GRANT TRIGGER" in note for note in notes] == [True, True]
        assert not schema.current(weak.engine).keeps_usage
        assert not schema.current(weak.engine).keeps_journal
        mariadb_server.execute(f"GRANT TRIGGER ON {weak.engine.url.database}.* TO weak@localhost")
        weak.dispose()
        assert schema.upgrade(weak.engine) == ()
        assert schema.current(weak.engine).keeps_usage
        assert schema.current(weak.engine).keeps_journal


ROLE = "CREATE ROLE guild; GRANT TRIGGER ON {name}.* TO guild; GRANT guild TO {user}"
GRANTS = {
    "GRANT TRIGGER ON {name}.* TO {user}": True,
    "GRANT ALL ON {name}.* TO {user}": True,
    "GRANT ALL ON *.* TO {user}": True,
    "GRANT TRIGGER ON `emp%`.* TO {user}": True,
    "GRANT TRIGGER ON `emp_y\\_%`.* TO {user}": True,
    "GRANT TRIGGER ON `emp\\_y%`.* TO {user}": False,
    "GRANT TRIGGER ON other.* TO {user}; GRANT SUPER ON *.* TO {user}": False,
    ROLE: False,
    f"{ROLE}; SET DEFAULT ROLE guild FOR {{user}}": True,
}
"""Grants, and whether they suffice."""


@pytest.mark.mariadb
@pytest.mark.parametrize(("grants", "is_enough"), GRANTS.items())
def test_a_grant_is_missing_exactly_if_mariadb_refuses_the_trigger(
    mariadb_server: MariaDB, empty_mariadb_url: str, grants: str, is_enough: bool
) -> None:
    with weak_user(mariadb_server, empty_mariadb_url) as url, opened_database(url) as weak:
        schema.upgrade(weak.engine)
        user = {"name": weak.engine.url.database, "user": "weak@localhost"}
        mariadb_server.execute("DROP ROLE IF EXISTS guild", *grants.format(**user).split("; "))
        with weak.engine.begin() as connection:
            assert (missing_grant(connection) is None) == is_enough
            with contextlib.nullcontext() if is_enough else pytest.raises(OperationalError):
                run(connection, "CREATE TRIGGER x BEFORE INSERT ON resource_classes FOR EACH ROW SET @x = 1")


@pytest.mark.mariadb
def test_an_upgrade_of_mariadb_that_was_interrupted_is_finished_by_the_next(mariadb: Database) -> None:
    with mariadb.writer.begin() as connection:
        # As after a crash between creating the first triggers and counting.
        run(
            connection,
            "DROP TRIGGER provider_usages_provider_deleted",
            "DELETE FROM placement_server_version",
            "INSERT INTO provider_usages VALUES (7, 7, 7, NULL, NULL)",
        )
    schema.upgrade(mariadb.engine)
    assert schema.current(mariadb.engine).keeps_usage
    with mariadb.writer.begin() as connection:
        assert kept(connection) == {}

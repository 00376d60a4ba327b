"""Copying a database into one of another kind, and back."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from placement.store.checks import schema_check
from placement.store.connection.database import Database
from placement.store.lifecycle import copying, schema
from placement.store.lifecycle.copying import CopyRefused
from placement.store.lifecycle.maintenance import silent
from placement.store.tables import VERSION_TABLE, inventories
from tests.databases import opened_database
from tests.postgresql import PROGRAMS
from tests.rows_of_a_cloud import fill, snapshot

KINDS = ["sqlite", "postgresql"]


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def source(database: Database) -> Database:
    """A database with a cloud in it, of each kind."""
    fill(database)
    return database


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, opened: ExitStack, tmp_path: Path) -> Database:
    """An empty database, of each kind."""
    if request.param == "sqlite":
        return opened.enter_context(opened_database(f"sqlite:///{tmp_path / 'target.sqlite'}"))
    return opened.enter_context(opened_database(request.getfixturevalue("empty_postgresql_url")))


def test_everything_is_there_and_goes_on_working(source: Database, target: Database):
    copied = {each.table: each.rows for each in copying.copy(source.engine, target.engine)}
    assert snapshot(target) == snapshot(source)
    assert copied["resource_providers"] == 4
    assert schema_check.check(target.engine) == ()
    fill(target, prefix="new")  # ids continue where the source's ended
    assert schema_check.check(target.engine) == ()


@pytest.mark.mariadb
def test_mariadb_in_between_changes_nothing_but_fractions_of_seconds(
    source: Database, opened: ExitStack, empty_mariadb_url: str, tmp_path: Path
):
    middle = opened.enter_context(opened_database(empty_mariadb_url))
    back = opened.enter_context(opened_database(f"sqlite:///{tmp_path / 'back.sqlite'}"))
    copying.copy(source.engine, middle.engine)
    copying.copy(middle.engine, back.engine)
    assert snapshot(back) == snapshot(source)
    assert schema_check.check(middle.engine) == ()


def test_a_target_with_data_is_left_alone(source: Database, target: Database):
    copying.copy(source.engine, target.engine)
    before = snapshot(target)
    with pytest.raises(CopyRefused, match="holds data already"):
        copying.copy(source.engine, target.engine)
    assert snapshot(target) == before


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (f"DELETE FROM {VERSION_TABLE}", "run 'placement db upgrade'"),
        (
            f"UPDATE {VERSION_TABLE} SET version_num = 'of a later release'",
            r"newer release .*revision of a later release.*copy it with that release",
        ),
        (
            "UPDATE resource_providers SET parent_provider_id = id WHERE name = 'host-numa0'",
            "trees of the source are damaged",
        ),
    ],
    ids=["of an older release", "of a newer release", "damaged"],
)
def test_a_source_that_cannot_be_copied_is_refused_and_nothing_is_copied(
    source: Database, target: Database, statement: str, sentence: str
) -> None:
    with source.writer.begin() as connection:
        connection.execute(text(statement))
    with pytest.raises(CopyRefused, match=sentence):
        copying.copy(source.engine, target.engine)
    assert (
        "resource_providers" not in inspect(target.engine).get_table_names()
        or not snapshot(target)["resource_providers"]
    )


def test_a_row_that_is_not_the_same_is_named(source: Database, target: Database):
    copying.copy(source.engine, target.engine)
    with target.writer.begin() as connection:
        connection.execute(text("UPDATE inventories SET total = total + 1"))
    with (
        source.engine.connect() as old,
        target.engine.connect() as new,
        pytest.raises(CopyRefused, match="copy of inventories differs"),
    ):
        copying._compared(old, new, inventories, done=copying._RowsDone(silent, 1))


def restored_by_postgresql(database: Database, request: pytest.FixtureRequest, directory: Path) -> str:
    """By pg_dump and pg_restore."""
    url, target = (request.getfixturevalue(name) for name in ("postgresql_url", "empty_postgresql_url"))
    dump = str(directory / "dump")
    subprocess.run([PROGRAMS / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
    subprocess.run([PROGRAMS / "pg_restore", f"--dbname={target}", dump], check=True)
    return str(target)


def restored_by_sqlite(database: Database, request: pytest.FixtureRequest, directory: Path) -> str:
    """By VACUUM INTO while a server has the file open."""
    with database.engine.connect() as connection:
        connection.connection.driver_connection.execute("VACUUM INTO ?", (str(directory / "backup.sqlite"),))
    return f"sqlite:///{directory / 'backup.sqlite'}"


@pytest.mark.parametrize(
    ("kind", "restore"), [("postgresql", restored_by_postgresql), ("sqlite", restored_by_sqlite)], ids=KINDS[::-1]
)
def test_a_backup_is_whole(
    kind: str, restore, opened: ExitStack, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """As docs/how-to/back-up-and-restore.md describes: triggers included, and an upgrade changes nothing."""
    database = opened.enter_context(opened_database(request.getfixturevalue(f"{kind}_url")))
    fill(database)
    restored = opened.enter_context(opened_database(restore(database, request, tmp_path)))
    assert snapshot(restored) == snapshot(database)
    schema.upgrade(restored.engine)
    assert schema_check.check(restored.engine) == ()
    fill(restored, prefix="new")
    assert schema_check.check(restored.engine) == ()

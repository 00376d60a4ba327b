"""Databases created by the reference itself are adopted, kept exact, and handed back, with the real package."""

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from placement.store.checks import schema_check
from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from placement.store.lifecycle.reference_schema import SchemaRefused
from tests import reference, servers
from tests.api.conftest import Api
from tests.claims import entry
from tests.clouds import allocate, build, provider
from tests.databases import opened_database
from tests.http_calls import HttpCalls, ask
from tests.servers import Installation
from tests.store.rows import VCPU, kept, run, summed
from tests.store.rows import allocate as insert_allocations
from tests.upgrades import differences

TREE = provider(
    "host",
    provider("numa0", VCPU=16, traits=["HW_NUMA_ROOT"]),
    provider("gpu", CUSTOM_GPU=4),
    DISK_GB=500,
    aggregates="A",
)


@pytest.fixture(scope="module")
def installed() -> Installation:
    """The reference in a separate environment."""
    try:
        return reference.installation()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the reference cannot be installed, and REFERENCE_PYTHON does not name one: {error}")


@pytest.fixture
def directory(installed: Installation, empty_database_url: str, tmp_path: Path) -> Path:
    """A directory with the reference's configuration for a database without tables."""
    servers.write_configuration(tmp_path, reference.configuration(empty_database_url))
    return tmp_path


@pytest.fixture
def database(empty_database_url: str) -> Iterator[Database]:
    """The database, opened by this server's store."""
    with opened_database(empty_database_url) as opened:
        yield opened


MIGRATIONS = """
import os, sys
from oslo_config import cfg
from placement import conf, db_api
from placement.db.sqlalchemy import migration
import alembic.config, psycopg2, sqlalchemy.dialects.postgresql, sqlalchemy.dialects.sqlite

def migrate(directory, revision):
    os.chdir(directory)
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config(['--config-file', 'placement.conf'], project='placement')
    db_api.configure(config)
    migration.upgrade(revision)

for line in sys.stdin:
    if not (child := os.fork()):
        migrate(*line.split())
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""A process of the reference that forks for each database, because it takes more than a second to start."""

Migrate = Callable[[str], None]


@pytest.fixture(scope="module")
def migrations(installed: Installation) -> Iterator["subprocess.Popen[str]"]:
    """The reference, waiting for directories and revisions; its command only migrates to the newest."""
    command = [str(installed.python), "-c", MIGRATIONS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env=dict(installed.variables)
    ) as process:
        yield process


@pytest.fixture
def migrate_reference(migrations: "subprocess.Popen[str]", directory: Path) -> Migrate:
    """Run the reference's migrations of the database up to a revision."""

    def migrate(revision: str) -> None:
        assert migrations.stdin
        assert migrations.stdout
        print(directory, revision, file=migrations.stdin, flush=True)
        assert migrations.stdout.readline() == "0\n"

    return migrate


def test_a_database_with_data_is_adopted_served_and_handed_back(
    installed: Installation, migrate_reference: Migrate, directory: Path, database: Database, empty_database_url: str
) -> None:
    migrate_reference("head")
    with servers.running_server(installed, directory) as url:
        call = HttpCalls(url)
        cloud = build(call, TREE)
        consumers = [allocate(call, cloud.providers["numa0"], {"VCPU": 2 + number}) for number in range(3)]
        consumers += [allocate(call, cloud.providers["gpu"], {"CUSTOM_GPU": 1})]
        paths = [f"/resource_providers/{id_}{end}" for id_ in cloud.providers.values() for end in (
            "", "/usages", "/inventories", "/allocations", "/traits", "/aggregates")]  # fmt: skip
        paths += [f"/allocations/{consumer}" for consumer in consumers]
        before = [call("GET", path, "1.39") for path in paths]

    assert schema.upgrade(database.engine) == ()

    assert differences(database) == []
    assert schema_check.check(database.engine) == ()
    with database.engine.connect() as connection:
        assert sorted(kept(connection).values()) == [1, 9]
    settings = Settings(database=DatabaseSettings(connection=empty_database_url), auth_strategy="noauth2")
    app = create_app(settings)
    api = Api(app)
    assert [((answer := api.get(path)).status_code, answer.json) for path in paths] == before
    new, host = str(uuid.uuid4()), cloud.providers["host"]
    assert api.put(f"/allocations/{new}", entry({host: {"DISK_GB": 5}})).status_code == 204
    assert api.delete(f"/allocations/{consumers[0]}").status_code == 204
    app.extensions["placement"].database.dispose()

    assert schema.release(database.engine) is True

    migrate_reference("head")
    with servers.running_server(installed, directory) as url:
        call = HttpCalls(url)
        usages = ask(call, "GET", f"/resource_providers/{host}/usages", "1.39")
        assert usages["usages"] == {"DISK_GB": 5}
        assert ask(call, "GET", f"/resource_providers/{cloud.providers['numa0']}/usages", "1.39")["usages"] == {
            "VCPU": 7
        }
        ask(call, "DELETE", f"/allocations/{new}", "1.39")
        for consumer in consumers[1:]:
            ask(call, "DELETE", f"/allocations/{consumer}", "1.39")
        for name in ("gpu", "numa0", "host"):
            ask(call, "DELETE", f"/resource_providers/{cloud.providers[name]}", "1.39")


@pytest.mark.parametrize("revision", ["b4ed3a175331", "b5c396305c25", "422ece571366"])
def test_a_database_of_an_older_reference_is_migrated_and_adopted(
    migrate_reference: Migrate, database: Database, revision: str
) -> None:
    migrate_reference(revision)
    with database.writer.begin() as connection:
        insert_old_rows(connection)
    schema.upgrade(database.engine)
    assert differences(database) == []
    state = schema.current(database.engine)
    assert (state.reference_revision, state.keeps_usage) == ("a082b8bb98d0", True)
    with database.writer.begin() as connection:
        assert kept(connection) == summed(connection) == {(1, VCPU): 3}
        assert connection.execute(text("SELECT uuid FROM consumers")).scalars().all() == ["c1"]
    migrate_reference("head")


def insert_old_rows(connection) -> None:
    run(
        connection,
        "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) VALUES (1, 'p', 'p', 0, 1)",
        "INSERT INTO consumers (id, uuid, project_id, user_id, generation) VALUES (1, 'c1', 1, 1, 0)",
    )
    insert_allocations(connection, "c1", {(1, VCPU): 3})


@pytest.mark.parametrize("damage", ["UPDATE resource_providers SET root_provider_id = NULL", "DELETE FROM consumers"])
def test_old_rows_that_are_incomplete_have_to_be_migrated_first(
    migrate_reference: Migrate, directory: Path, database: Database, damage: str
) -> None:
    migrate_reference("b4ed3a175331")
    with database.writer.begin() as connection:
        insert_old_rows(connection)
        run(connection, damage)
    with pytest.raises(SchemaRefused, match="placement-manage db online_data_migrations"):
        schema.upgrade(database.engine)
    assert schema.current(database.engine).reference_revision == "b4ed3a175331"
    servers.placement_manage(servers.this_project(), directory, "db", "online_data_migrations")
    schema.upgrade(database.engine)
    assert schema.current(database.engine).is_up_to_date

"""placement db, placement-manage and placement-status on real databases."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Connection, create_engine

from placement.cli import manage, status
from placement.cli.db import db
from placement.store.connection.database import Database
from placement.store.lifecycle.maintenance import exclusively
from tests import servers
from tests.mariadb import MariaDB, weak_user
from tests.rows_of_a_cloud import fill
from tests.store.rows import MEMORY_MB, VCPU, add_providers, allocate, kept, kept_stock, run
from tests.upgrades import downgrade

ALL_WELL = """\
+-------------------------------------------+
| Upgrade Check Results                     |
+-------------------------------------------+
| Check: Missing Root Provider IDs          |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Incomplete Consumers               |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Policy File JSON to YAML Migration |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
"""


class Commands:
    """The commands with the configuration file of one database."""

    def __init__(self, directory: Path, database_url: str) -> None:
        self.configuration = str(servers.write_configuration(directory, servers.default_sections(database_url)))

    def db(self, *arguments: str) -> Result:
        return CliRunner().invoke(db, ["--config-file", self.configuration, *arguments])

    def manage(self, *arguments: str) -> Result:
        return CliRunner().invoke(manage.main, ["--config-file", self.configuration, *arguments])

    def status(self, *arguments: str) -> Result:
        return CliRunner().invoke(status.main, ["--config-file", self.configuration, *arguments])


@contextmanager
def guest_of(url: str) -> Iterator[tuple[Connection, str]]:
    """Create a user who may read and write the tables of another; yield the other's connection, and the user's URL."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        run(connection, "CREATE ROLE guest LOGIN", "GRANT ALL ON ALL TABLES IN SCHEMA public TO guest")
        try:
            yield connection, url.replace("postgres:@", "guest:@")
        finally:
            run(connection, "REASSIGN OWNED BY guest TO postgres", "DROP OWNED BY guest", "DROP ROLE guest")
    engine.dispose()


@pytest.fixture
def commands(tmp_path: Path, database_url: str) -> Commands:
    """The commands on a migrated database, the same as ``database``."""
    return Commands(tmp_path, database_url)


@pytest.fixture
def on_empty(tmp_path: Path, empty_database_url: str) -> Commands:
    """The commands on a database without tables."""
    return Commands(tmp_path, empty_database_url)


def damage(database: Database) -> None:
    """Leave two providers without a root and two consumers without a record."""
    with database.writer.begin() as connection:
        add_providers(connection, 2)
        allocate(connection, "c1", {(1, VCPU): 1, (1, MEMORY_MB): 1})
        allocate(connection, "c2", {(2, VCPU): 2})
        run(connection, "UPDATE resource_providers SET root_provider_id = NULL")


class TestManage:
    def test_an_empty_database_is_synced_and_tells_the_version_of_the_reference(self, on_empty: Commands) -> None:
        assert on_empty.manage("db", "version").output == "None\n"
        synced = on_empty.manage("db", "sync")
        assert (synced.exit_code, synced.output) == (0, "")
        assert on_empty.manage("db", "version").output == "a082b8bb98d0\n"

    def test_options_may_follow_the_subcommand(self, on_empty: Commands) -> None:
        arguments = ["--debug", "db", "sync", "--config-file", on_empty.configuration]
        assert CliRunner().invoke(manage.main, arguments).exit_code == 0
        assert on_empty.manage("db", "version").output == "a082b8bb98d0\n"

    def test_stamping_writes_a_version(self, commands: Commands) -> None:
        assert commands.manage("db", "stamp", "b4ed").exit_code == 0
        assert commands.manage("db", "version").output == "b4ed3a175331\n"
        refused = commands.manage("db", "stamp", "nonsense")
        assert refused.exit_code == 1
        assert "Can't locate revision identified by 'nonsense'" in refused.output

    def test_old_rows_are_completed_in_one_limited_batch_and_then_the_rest(
        self, commands: Commands, database: Database
    ) -> None:
        damage(database)
        limited = commands.manage("db", "online_data_migrations", "--max-count", "3")
        assert limited.exit_code == 1
        assert limited.output == (
            "2 rows matched query set_root_provider_ids, 2 migrated\n"
            "1 rows matched query create_incomplete_consumers, 1 migrated\n"
            "+-----------------------------+-------------+-----------+\n"
            "|          Migration          | Total Found | Completed |\n"
            "+-----------------------------+-------------+-----------+\n"
            "|    set_root_provider_ids    |      2      |     2     |\n"
            "| create_incomplete_consumers |      1      |     1     |\n"
            "+-----------------------------+-------------+-----------+\n"
        )
        rest = commands.manage("db", "online_data_migrations")
        assert rest.exit_code == 0
        assert commands.manage("db", "online_data_migrations", "--max-count", "9" * 30).exit_code == 0
        assert rest.output.startswith("Running batches of 50 until complete\n1 rows matched query create_incomplete_")
        assert commands.status("upgrade", "check").exit_code == 0

    @pytest.mark.parametrize("count", ["0", "-1", "x"])
    def test_a_limit_must_be_a_positive_number(self, commands: Commands, count: str) -> None:
        refused = commands.manage("db", "online_data_migrations", f"--max-count={count}")
        assert (refused.exit_code, refused.output) == (127, "Must supply a positive value for max_count\n")

    @pytest.mark.parametrize(("arguments", "expected"), [([], 1), (["db"], 0), (["db", "nonsense"], 2)])
    def test_without_a_subcommand_the_help_is_shown(
        self, commands: Commands, arguments: list[str], expected: int
    ) -> None:
        shown = commands.manage(*arguments)
        assert shown.exit_code == expected
        assert "Usage:" in shown.output

    def test_a_missing_configuration_file_is_told_in_one_sentence(self, tmp_path: Path) -> None:
        missing = CliRunner().invoke(manage.main, ["--config-file", str(tmp_path / "none.conf"), "db", "sync"])
        assert missing.exit_code == 1
        assert missing.output.count("\n") == 1
        assert "none.conf" in missing.output


class TestStatus:
    def test_a_migrated_database_is_ready(self, commands: Commands) -> None:
        checked = commands.status("upgrade", "check")
        assert (checked.exit_code, checked.output) == (0, ALL_WELL)

    def test_incomplete_rows_are_told_and_the_worst_of_them_is_the_status(
        self, commands: Commands, database: Database
    ) -> None:
        damage(database)
        checked = commands.status("upgrade", "check")
        assert checked.exit_code == 2
        assert "Result: Failure" in checked.output
        assert "held by 2 consumers" in checked.output
        commands.manage("db", "online_data_migrations", "--max-count", "2")
        assert commands.status("upgrade", "check").exit_code == 1

    def test_the_results_can_be_had_as_json(self, commands: Commands) -> None:
        document = json.loads(commands.status("upgrade", "check", "--json").output)
        assert [check["result"] for check in document["checks"]] == [0, 0, 0]

    def test_a_policy_file_in_json_is_a_failure(self, commands: Commands, tmp_path: Path) -> None:
        (tmp_path / "policy.yaml").write_text('{"placement:usages": "role:admin"}')
        checked = commands.status("upgrade", "check", "--json")
        assert checked.exit_code == 2
        assert "policy.yaml is written in JSON" in json.loads(checked.output)["checks"][2]["details"]

    def test_where_nothing_can_be_checked_the_status_is_none_of_the_checks(self, on_empty: Commands) -> None:
        checked = on_empty.status("upgrade", "check")
        assert checked.exit_code == 255
        assert "Traceback" not in checked.output


class TestDb:
    def test_a_database_is_made_shown_verified_and_released(self, on_empty: Commands) -> None:
        assert on_empty.db("upgrade").output == "The database is at revision 0008.\n"
        assert "kept by triggers" in on_empty.db("current").output
        verified = on_empty.db("check")
        assert (verified.exit_code, verified.output) == (0, "Nothing is wrong.\n")
        assert on_empty.db("release").output == "The database is openstack-placement's alone.\n"
        assert "none (newest: 0008)" in on_empty.db("current").output
        assert on_empty.db("release").output == "There was nothing to remove.\n"
        repaired = on_empty.db("check", "--repair")
        assert (repaired.exit_code, "run 'placement db upgrade' on it first" in repaired.output) == (1, True)

    def test_what_is_wrong_is_told_repaired_and_then_right(self, commands: Commands, database: Database) -> None:
        with database.writer.begin() as connection:
            add_providers(connection, 3)
            run(
                connection,
                "UPDATE resource_providers SET parent_provider_id = 1 WHERE id = 2",
                "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, "
                "max_unit, step_size, allocation_ratio) VALUES (1, 0, 8, 0, 1, 8, 1, 1.0), (77, 0, 8, 0, 1, 8, 1, 1.0)",
            )
            allocate(connection, "c1", {(1, VCPU): 5})
            run(connection, "UPDATE provider_usages SET used = 7, capacity = 9")
        told = commands.db("check")
        assert told.exit_code == 1
        for sentence in (
            "VCPU of provider-1: kept 7, allocated 5",
            "VCPU of provider-1: capacity kept 9, inventory 8",
            "inventories of providers that do not exist: resource_provider_id 77",
            "providers that name the wrong root provider: provider 2",
            "1  consumers that hold allocations but are not known",
        ):
            assert sentence in told.output
        repaired = commands.db("check", "--repair")
        assert (repaired.exit_code, repaired.output.count("repaired\n")) == (0, 4)
        assert commands.db("check").output == "Nothing is wrong.\n"
        with database.writer.begin() as connection:
            assert (kept(connection), kept_stock(connection)) == ({(1, VCPU): 5}, {(1, VCPU): (1, 8)})

    def test_a_schema_of_the_release_before_is_not_repaired(self, commands: Commands, database: Database) -> None:
        """Its triggers would write to tables that are not there yet."""
        with exclusively(database.engine) as connection:
            downgrade(connection, "0004")
        refused = commands.db("check", "--repair")
        assert (refused.exit_code, "run 'placement db upgrade' on it first" in refused.output) == (1, True)
        assert commands.db("upgrade").exit_code == 0
        assert commands.db("check").output == "Nothing is wrong.\n"

    def test_a_repair_is_not_advised_again_for_what_it_has_left(self, commands: Commands, database: Database) -> None:
        with database.writer.begin() as connection:
            add_providers(connection, 3)
            run(
                connection,
                "UPDATE resource_providers SET parent_provider_id = 3 - id WHERE id < 3",
                "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, "
                "max_unit, step_size, allocation_ratio) VALUES (3, 777, 8, 0, 1, 8, 1, 1.0)",
                "UPDATE resource_providers SET root_provider_id = 1 WHERE id = 3",
            )
        advised = commands.db("check")
        assert (advised.exit_code, "db check --repair" in advised.output) == (1, True)
        repaired = commands.db("check", "--repair")
        assert (repaired.exit_code, "The remaining ones need a decision." in repaired.output) == (1, True)
        left = commands.db("check")
        assert (left.exit_code, "db check --repair" in left.output) == (1, False)
        assert left.output.endswith("All of it needs a decision.\n")

    @pytest.mark.mariadb
    def test_where_a_grant_is_missing_no_repair_is_advised_but_the_grant(
        self, tmp_path: Path, mariadb_server: MariaDB, empty_mariadb_url: str
    ) -> None:
        assert Commands(tmp_path, empty_mariadb_url).db("upgrade").exit_code == 0
        with weak_user(mariadb_server, empty_mariadb_url) as url:
            commands = Commands(tmp_path, url)
            for arguments in (["check"], ["check", "--repair"], ["check"]):
                left = commands.db(*arguments)
                assert (left.exit_code, left.output.count("GRANT TRIGGER")) == (1, 1)
                assert "--repair" not in left.output
        assert Commands(tmp_path, empty_mariadb_url).db("check").output == "Nothing is wrong.\n"

    def test_who_does_not_own_the_tables_is_told_by_whom_the_triggers_can_be_made(
        self, tmp_path: Path, postgresql_url: str
    ) -> None:
        owner = Commands(tmp_path, postgresql_url)
        assert owner.db("upgrade").exit_code == 0
        with guest_of(postgresql_url) as (connection, url):
            run(connection, "DROP TRIGGER provider_usages_inserted ON allocations")
            guest = Commands(tmp_path, url)
            for arguments in (["check"], ["check", "--repair"], ["check"]):
                left = guest.db(*arguments)
                advice = "GRANT postgres TO guest (or act as postgres, who owns the tables)"
                assert (left.exit_code, left.output.count(advice)) == (1, 1)
                assert "--repair" not in left.output
            run(connection, "GRANT postgres TO guest")
            assert guest.db("upgrade").exit_code == 0
            assert guest.db("check").output == "Nothing is wrong.\n"

    def test_a_generation_that_nobody_can_name_is_put_right(self, commands: Commands, database: Database) -> None:
        with database.writer.begin() as connection:
            add_providers(connection, 2)
            run(connection, "UPDATE resource_providers SET generation = id - 2")
            run(connection, "UPDATE resource_providers SET generation = NULL WHERE id = 2")
        told = commands.db("check")
        assert told.exit_code == 1
        assert "generations that are missing or negative: resource_providers provider-2" in told.output
        assert commands.db("check", "--repair").exit_code == 0
        assert commands.db("check").output == "Nothing is wrong.\n"

    def test_a_copy_tells_how_many_rows_are_there(self, commands: Commands, database: Database, tmp_path: Path) -> None:
        fill(database)
        target = f"sqlite:///{tmp_path / 'copy.sqlite'}"
        copied = commands.db("copy", "--to", target)
        assert copied.exit_code == 0
        assert re.search(r"^resource_providers +4$", copied.output, re.MULTILINE)
        assert copied.output.endswith("All rows were copied and are identical.\n")
        again = commands.db("copy", "--to", target)
        assert (again.exit_code, "holds data already" in again.output) == (1, True)
        assert "s3cr3t" not in commands.db("copy", "--to", "postgresql://u:s3cr3t@nowhere.invalid/x").output

    def test_an_unreachable_database_is_told_without_its_password(self, tmp_path: Path) -> None:
        unreachable = Commands(tmp_path, f"postgresql+psycopg2://u:s3cr3t@/db?host={tmp_path}").db("upgrade")
        assert unreachable.exit_code == 1
        assert "cannot be reached" in unreachable.output
        assert unreachable.output.count("\n") == 1
        assert "s3cr3t" not in unreachable.output

"""``placement audit``: what it finds, and that nothing is deleted without confirmation."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import make_url, text

from placement.cli.main import main
from placement.services.allocations import consumer_allocations
from placement.store.checks import schema_check
from placement.store.connection.database import Database
from tests import servers
from tests.cli.commands import Command
from tests.rows_of_a_cloud import fill, uuid_of

LIVING, GONE = uuid_of("host-consumer"), uuid_of("away-consumer")


class Audit:
    """The command on one database, which holds two clouds with an old consumer in each."""

    def __init__(self, directory: Path, database: Database, url: str) -> None:
        self.database = database
        self._configuration = str(servers.write_configuration(directory, servers.default_sections(url)))
        for prefix in ("host", "away"):
            fill(database, prefix)
        self.sql("UPDATE consumers SET created_at = '2020-01-01 00:00:00'")

    def sql(self, statement: str) -> None:
        with self.database.writer.begin() as connection:
            connection.execute(text(statement))

    def __call__(self, *arguments: str, said: str = "") -> Result:
        return CliRunner().invoke(main, ["audit", "--config-file", self._configuration, *arguments], input=said)

    def process(self, *arguments: str, said: str) -> "subprocess.CompletedProcess[str]":
        """Run it as a shell does, with a standard input that has its name."""
        line = [str(Path(sys.executable).with_name("placement")), "audit", "--config-file", self._configuration]
        return subprocess.run([*line, *arguments], input=said, capture_output=True, text=True, check=False)

    def held(self, consumer: str) -> bool:
        return consumer_allocations(self.database, consumer) is not None


@pytest.fixture
def run(tmp_path: Path, database: Database, database_url: str) -> Audit:
    return Audit(tmp_path, database, database_url)


@pytest.fixture
def living(tmp_path: Path) -> str:
    """Return a list with one of the two consumers, in the form in which some tools print uuids."""
    path = tmp_path / "living"
    path.write_text(f"# servers\n{LIVING.upper().replace('-', '')}\n\n")
    return str(path)


def test_without_a_list_nobody_is_unknown(run: Audit) -> None:
    done = run()
    assert (done.exit_code, done.output) == (0, "Nothing was found.\n")


def test_who_is_not_on_the_list_is_shown_with_what_it_holds_and_kept(run: Audit, living: str) -> None:
    done = run("--known-consumers", living)
    assert done.exit_code == 3
    held = "INSTANCE of project away-project, away-numa0: 3 VCPU + 1 CUSTOM_AWAY"
    assert f"unknown consumer  {GONE}  {held}" in done.output
    assert run.held(GONE)


def test_the_list_may_come_from_another_command(run: Audit) -> None:
    done = run("--known-consumers", "-", said=f"{LIVING}\n{GONE}\n")
    assert (done.exit_code, done.output) == (0, "Nothing was found.\n")


@pytest.mark.parametrize(("answer", "kept"), [("n\n", True), ("y\n", False), ("", True)])
def test_nothing_is_deleted_before_somebody_agrees(run: Audit, living: str, answer: str, kept: bool) -> None:
    done = run("--known-consumers", living, "--fix", said=answer)
    assert "Delete the allocations of 1 consumers" in done.output
    assert run.held(GONE) is kept
    assert run.held(LIVING)
    assert done.exit_code == (0 if not kept else 3 if answer else 1)
    assert schema_check.check(run.database.engine) == ()


def test_with_yes_nobody_is_asked(run: Audit, living: str) -> None:
    done = run("--known-consumers", living, "--fix", "--yes")
    assert (done.exit_code, run.held(GONE)) == (0, False)
    assert run("--known-consumers", living).output == "Nothing was found.\n"


def test_the_young_and_those_of_other_types_are_left_alone(run: Audit, living: str) -> None:
    assert run("--known-consumers", living, "--consumer-type", "MIGRATION").exit_code == 0
    run.sql("UPDATE consumers SET created_at = '2999-01-01 00:00:00'")
    assert run("--known-consumers", living).exit_code == 0


def test_a_list_on_standard_input_leaves_none_for_the_answer(run: Audit) -> None:
    done = run.process("--known-consumers", "-", "--fix", said=f"{LIVING}\ny\n")
    assert done.returncode == 2
    assert "add --yes, or name a file" in done.stderr
    assert run.held(GONE)


@pytest.mark.parametrize(("said", "sentence"), [("\n", "is empty"), ("id\n", "'id', which is not a uuid")])
def test_a_list_that_is_none_stops_it(run: Audit, said: str, sentence: str) -> None:
    done = run("--known-consumers", "-", "--fix", "--yes", said=said)
    assert done.exit_code == 1
    assert sentence in done.output
    assert run.held(GONE)


def test_over_full_providers_are_shown_for_a_decision(run: Audit) -> None:
    run.sql("UPDATE inventories SET total = 1, reserved = 0, allocation_ratio = 1.5 WHERE total = 8")
    done = run("--fix", "--yes")
    assert done.exit_code == 3
    assert done.output.count("overcommitted provider  ") == 2
    assert "away-numa0  VCPU, 3 used of 1" in done.output


def test_what_belongs_to_nobody_goes(run: Audit) -> None:
    run.sql("DELETE FROM allocations")
    run.sql("DELETE FROM resource_provider_aggregates")
    run.sql("UPDATE placement_aggregates SET created_at = '2020-01-01 00:00:00'")
    found = run()
    assert found.exit_code == 3
    assert re.search(r"consumers without allocations +2  for example, ", found.output)
    assert re.search(rf"aggregates without members +2  for example, .*{uuid_of('host-aggregate')}", found.output)
    assert run("--fix", "--yes").exit_code == 0
    assert run().output == "Nothing was found.\n"


def test_a_server_finds_what_is_found_in_its_database(placement: Command, living: str) -> None:
    placement.with_database(lambda database: fill(database, "away"))
    asked = ("audit", "--known-consumers", living, "--older-than", "0", "--format", "json")
    found = placement.run(*asked)
    assert json.loads(found.stdout)["unknown_consumers"][0]["consumer_uuid"] == GONE
    with placement.running("serve", "--port", "0", "--workers", "1") as server:
        answered = placement.run(*asked, "--url", server.url())
        assert placement.run("audit", "--url", server.url(), "--fix").returncode == 2
    assert (answered.returncode, answered.stdout) == (found.returncode, found.stdout) == (3, found.stdout)


def test_no_consumer_is_older_than_the_calendar(run: Audit, living: str) -> None:
    done = run("--older-than", "999999999999")
    assert (done.exit_code, "Invalid value for '--older-than'" in done.output) == (2, True)
    assert run("--known-consumers", living, "--older-than", "500000000").output == "Nothing was found.\n"


def test_without_tables_there_is_nothing_to_audit(tmp_path: Path, empty_database_url: str) -> None:
    configuration = servers.write_configuration(tmp_path, servers.default_sections(empty_database_url))
    if empty_database_url.startswith("sqlite"):
        Path(str(make_url(empty_database_url).database)).touch()
    done = CliRunner().invoke(main, ["audit", "--config-file", str(configuration)])
    assert (done.exit_code, done.output) == (1, "Error: The database has no Placement tables.\n")

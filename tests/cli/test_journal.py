"""``placement journal`` shows who changed what, from the database or from a server, and prunes it."""

import csv
import io
import json
import os
import signal

import pytest
from sqlalchemy import event

from placement.app import create_app
from placement.cli.http_client import LocalClient
from placement.cli.journal import JournalReader
from placement.services.names import create_class, delete_class, rename_class
from placement.settings import DatabaseSettings, Settings
from placement.settings.planner.values import OwnerNames
from tests.cli.commands import Command
from tests.databases import open_database
from tests.rows_of_a_cloud import fill, uuid_of


@pytest.fixture
def cloud(placement: Command) -> str:
    """The default database, with a cloud in it."""
    return placement.with_database(fill)


@pytest.mark.usefixtures("cloud")
def test_the_newest_come_last_one_in_a_line(placement: Command) -> None:
    done = placement.run("journal", "--limit", "5")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert any("allocation created  VCPU 3  of " in line for line in lines)
    assert lines == sorted(lines, key=lambda line: line.split()[0])


def test_a_class_is_told_with_its_names(placement: Command, cloud: str) -> None:
    database = open_database(cloud)
    create_class(database, "CUSTOM_A")
    rename_class(database, "CUSTOM_A", "CUSTOM_B")
    delete_class(database, "CUSTOM_B")
    database.dispose()
    lines = placement.run("journal", "--limit", "3").stdout.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [
        "class_name created  CUSTOM_A",
        "class_name changed  CUSTOM_A -> CUSTOM_B",
        "class_name deleted  CUSTOM_B",
    ]


@pytest.mark.usefixtures("cloud")
def test_lines_of_json_are_those_of_the_api(placement: Command) -> None:
    told = [json.loads(line) for line in placement.run("journal", "--json", "--limit", "1000").stdout.splitlines()]
    assert [one["id"] for one in told] == sorted(one["id"] for one in told)
    (consumer,) = {one["consumer_uuid"] for one in told if one["kind"] == "allocation"}
    narrowed = placement.run("journal", "--json", "--consumer", consumer).stdout.splitlines()
    assert [json.loads(line) for line in narrowed] == [one for one in told if one.get("consumer_uuid") == consumer]


@pytest.mark.usefixtures("cloud")
def test_a_provider_is_given_by_its_name_or_uuid_and_shown_by_name(placement: Command) -> None:
    host = uuid_of("host")
    printed = placement.run("journal", "--provider", "host").stdout
    assert "  on host" in printed
    assert host not in printed
    assert placement.run("journal", "--provider", host.replace("-", "").upper()).stdout == printed
    rows = csv.DictReader(io.StringIO(placement.run("journal", "--provider", "host", "--format", "csv").stdout))
    assert {(row["provider"], row["provider_uuid"]) for row in rows} == {("host", host)}
    done = placement.run("journal", "--provider", "nobody")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No resource provider is named 'nobody'" in done.stderr


def test_projects_and_users_are_given_by_their_names(placement: Command, cloud: str) -> None:
    configured = ("journal", *placement.configured(cloud, "names: {projects: {host-project: research}}\n"))
    printed = placement.run(*configured, "--project", "research").stdout
    assert "allocation created" in printed
    assert placement.run(*configured, "--project", "host-project").stdout == printed


@pytest.mark.usefixtures("cloud")
def test_what_is_older_than_it_is_kept_is_removed(placement: Command) -> None:
    assert placement.run("journal", "prune").stdout == "0 rows were removed.\n"
    assert placement.run("journal", "prune", "--keep-days", "1000000").stdout == "0 rows were removed.\n"
    done = placement.run("journal", "prune", "--keep-days", "0")
    assert done.returncode == 0
    assert int(done.stdout.split()[0]) > 10
    assert len(placement.run("journal").stdout.splitlines()) == 1


@pytest.mark.parametrize("arguments", [(), ("prune",), ("cadf", "--once")], ids=" ".join)
def test_a_database_without_a_journal_is_told(placement: Command, arguments: tuple[str, ...]) -> None:
    url, events = f"sqlite:///{placement.home}/placement.sqlite", f"{placement.home}/events"
    options = placement.configured(url, journal__cadf=events)
    done = placement.run("journal", *arguments, *options)
    file = placement.home / "placement.sqlite"
    missing = f"Error: There is no database file {file}; 'placement db upgrade' creates it.\n"
    assert (done.returncode, done.stderr) == (1, missing)
    file.touch()
    done = placement.run("journal", *arguments, *options)
    assert (done.returncode, done.stderr) == (1, "Error: The database has no Placement tables.\n")
    for step in ("upgrade", "release"):
        assert placement.run("db", step, *options).returncode == 0
    done = placement.run("journal", *arguments, *options)
    said = "Error: The database has no journal: run 'placement db upgrade' on it first.\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_journal_that_is_not_written_is_told(placement: Command) -> None:
    options = placement.configured(f"sqlite:///{placement.home}/placement.sqlite", journal__enabled="false")
    assert placement.run("db", "upgrade", *options).returncode == 0
    done = placement.run("journal", *options)
    said = "Nothing is recorded: [journal] enabled is off, or its triggers are missing.\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)


def test_following_tells_what_comes(placement: Command, cloud: str) -> None:
    with placement.running("journal", "--follow", "--limit", "1") as running:
        running.says("generation")
        database = open_database(cloud)
        fill(database, prefix="more")
        database.dispose()
        assert "VCPU 3" in running.says("allocation created")
        assert running.ends(signal.SIGINT) == 0
        assert running.process.stdout is not None
        assert "Aborted" not in running.process.stdout.read()


class Pressed:
    """Is Ctrl-C, pressed while this is being deleted."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_following_even_where_an_exception_is_only_reported(cloud: str) -> None:
    database = open_database(cloud)
    settings = Settings(DatabaseSettings(connection=cloud), auth_strategy="noauth2")
    client = LocalClient(create_app(settings, database=database))
    pressed = [Pressed()]
    event.listen(database.engine, "before_cursor_execute", lambda *_of_the_statement: pressed.clear())
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: pytest.fail("it goes on"))
    signal.alarm(30)
    shown = [*JournalReader(client, OwnerNames(), {}).entries(1, follow=True)]
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    database.dispose()
    assert shown

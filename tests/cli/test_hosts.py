"""``placement host`` and ``placement aggregate`` by the database, a dry run first; test_tasks.py asks a server."""

import json
from collections.abc import Iterator

import pytest

from placement.cli.demo import uuid_of
from placement.services.names import membership
from placement.store.connection.database import Database
from tests.cli.commands import Command
from tests.databases import opened_database
from tests.ui.clouds import load_demo


@pytest.fixture
def database(placement: Command) -> Iterator[Database]:
    """The database that the command uses by default, with the demo cloud."""
    with opened_database(placement.with_database(load_demo)) as opened:
        yield opened


@pytest.mark.usefixtures("database")
def test_a_host_is_shown_drained_enabled_and_removed(placement: Command) -> None:
    def run(*words: str) -> str:
        done = placement.run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    listed = [line.split()[0] for line in run("host", "list", "compute").splitlines()[2:]]
    assert listed == ["compute1", "compute2", "compute3"]
    shown = run("host", "show", "compute1-gpu0")
    assert uuid_of("vm0") in shown
    assert "8 GiB MEMORY_MB, 1 PGPU, 16 VCPU" in shown
    dry = run("host", "drain", "compute1", "--reserve")
    assert "compute2" in dry
    assert "add --yes" in dry
    assert "compute1" not in run("host", "list", "--disabled")
    assert ", disabled" in run("host", "drain", "compute1", "--yes")
    assert "compute1" in run("host", "list", "--disabled")
    assert "add --yes" in run("host", "enable", "compute1")
    assert ", disabled" not in run("host", "enable", "compute1", "--yes")
    assert "add --yes" in run("host", "remove", "compute1")
    assert "was removed" in run("host", "remove", "compute1", "--yes")
    assert "compute1" not in run("host", "list")
    assert json.loads(run("host", "show", "compute2", "--json"))["name"] == "compute2"


def test_hosts_move_from_one_aggregate_to_another(placement: Command, database: Database) -> None:
    source = membership(database, uuid_of("compute1")).aggregates[0]
    words = ["aggregate", "move", "compute1", "compute2", "--from", source, "--to", uuid_of("rack2")]
    assert "add --yes" in placement.run(*words).stdout
    assert membership(database, uuid_of("compute1")).aggregates == [source]
    assert "compute2" in placement.run(*words, "--yes").stdout
    assert membership(database, uuid_of("compute1")).aggregates == [uuid_of("rack2")]
    assert "None of them is in it." in placement.run(*words).stdout
    back = ["aggregate", "move", "--from", uuid_of("rack2"), "--to", source]
    assert "compute2" in placement.run(*back, "--yes").stdout, "a whole rack at once"
    assert membership(database, uuid_of("compute1")).aggregates == [source]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("name", "hint"), [("nobody", ""), ("comptue1", ". Did you mean compute1?")])
def test_an_unknown_host_is_named_with_a_similar_one(placement: Command, name: str, hint: str) -> None:
    done = placement.run("host", "drain", name, "--yes")
    told = f"Error: There is no host {name}{hint}; 'placement host list' lists them.\n"
    assert (done.returncode, done.stderr) == (1, told)

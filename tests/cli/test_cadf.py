"""``placement journal cadf`` writes CADF events: each change at least once, in a form that pycadf accepts."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pycadf import cadftaxonomy
from pycadf.event import Event
from pycadf.resource import Resource

from placement.domain.identity import CURRENT_REQUEST, Identity, ServedRequest
from tests import servers
from tests.cli.commands import Command
from tests.databases import migrate, open_database
from tests.deploy.programs import program
from tests.rows_of_a_cloud import fill

ROOT = Path(__file__).parents[2]

REQUEST = ServedRequest("req-1", identity=Identity("alice", "blue"), route="PUT /allocations/<consumer_uuid>")


class Audited:
    """A database that changes, and a command that writes its changes to a file."""

    def __init__(self, placement: Command, directory: Path, where: str) -> None:
        self._placement = placement
        self.url = f"sqlite:///{directory / 'placement.sqlite'}"
        migrate(self.url)
        sections = servers.default_sections(self.url) | {"journal": {"cadf": where}}
        self._options = ("--config-file", str(servers.write_configuration(directory, sections)))

    def change(self, name: str) -> None:
        database = open_database(self.url)
        fill(database, prefix=name)
        database.dispose()

    def write(self, *options: str) -> Any:
        return self._placement.run("journal", "cadf", "--once", *options, *self._options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.json"


@pytest.fixture
def audited(placement: Command, tmp_path: Path, file: Path) -> Audited:
    return Audited(placement, tmp_path, str(file))


def events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def as_pycadf_has_it(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event as written by pycadf, the library that OpenStack's services use."""

    def resource(name: str) -> Resource:
        fields = event[name]
        return Resource(id=fields["id"], typeURI=fields["typeURI"], name=fields.get("name"))

    parts = {name: resource(name) for name in ("initiator", "target", "observer")}
    fields = {name: event[name] for name in ("id", "eventType", "eventTime", "action", "outcome")}
    made = Event(**fields, **parts)
    assert made.is_valid()
    return made.as_dict()  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore:Invalid uuid")
def test_every_change_becomes_an_event_of_the_standard(audited: Audited, file: Path) -> None:
    CURRENT_REQUEST.set(REQUEST)
    audited.change("one")
    CURRENT_REQUEST.set(None)
    assert audited.write().returncode == 0
    told = events(file)
    assert {event["target"]["typeURI"].rpartition("/")[2] for event in told} >= {"allocation", "inventory", "provider"}
    for event in told:
        expected = as_pycadf_has_it(event)
        assert event | expected | {name: event[name] for name in ("initiator", "target")} == event
        assert expected["target"].items() <= event["target"].items()
        assert expected["initiator"].items() <= event["initiator"].items()
        assert all(cadftaxonomy.is_valid_resource(event[name]["typeURI"]) for name in ("target", "observer"))
        assert cadftaxonomy.is_valid_action(event["action"])
        assert event["initiator"] == {
            "typeURI": "service/security/account/user",
            "id": "alice",
            "user_id": "alice",
            "project_id": "blue",
            "request_id": "req-1",
        }
        assert event["attachments"][0]["content"]["request_id"] == "req-1"
    assert len({event["id"] for event in told}) == len(told)


def test_an_event_has_the_names_that_the_planner_file_knows(audited: Audited, file: Path, tmp_path: Path) -> None:
    (tmp_path / "planner.yaml").write_text("names: {users: {alice: Alice}, projects: {blue: Research}}\n")
    CURRENT_REQUEST.set(REQUEST)
    audited.change("one")
    CURRENT_REQUEST.set(None)
    audited.write()
    initiator = events(file)[0]["initiator"]
    assert (initiator["id"], initiator["name"], initiator["project_name"]) == ("alice", "Alice", "Research")


def test_it_goes_on_where_it_ended(audited: Audited, file: Path) -> None:
    audited.change("one")
    audited.write()
    before = events(file)
    audited.write()
    assert events(file) == before
    audited.change("two")
    audited.write()
    after = events(file)
    assert after[: len(before)] == before
    assert len(after) == 2 * len(before)
    assert after[-1]["initiator"] == {"typeURI": "unknown", "id": "unknown"}


def test_debians_logrotate_moves_the_file_and_no_event_is_lost(audited: Audited, file: Path, tmp_path: Path) -> None:
    logrotate = program("logrotate", "logrotate")
    rules = (ROOT / "debian" / "placement-server.logrotate").read_text()
    assert "/var/log/placement/audit.json {" in rules  # the path in docs/reference/journal.md
    (tmp_path / "rules").write_text(rules.replace("/var/log/placement/audit.json", str(file)))
    audited.change("one")
    audited.write()
    before = events(file)
    subprocess.run([logrotate, "--force", "--state", tmp_path / "state", tmp_path / "rules"], check=True)
    assert not file.exists()
    audited.change("two")
    audited.write()
    assert len(events(file)) == len(before)
    assert events(file.with_name(f"{file.name}.1")) == before


def test_what_was_written_but_not_remembered_is_written_again_with_the_same_ids(audited: Audited, file: Path) -> None:
    audited.change("one")
    audited.write()
    first = events(file)
    file.with_name("events.json.cursor").unlink()
    audited.write()
    assert events(file) == [*first, *first]


def test_what_the_journal_no_longer_holds_is_told_and_it_begins_anew(
    audited: Audited, file: Path, placement: Command
) -> None:
    audited.change("one")
    audited.write()
    file.with_name("events.json.cursor").write_text("W1s5OTldLG51bGwsMCxbOTk4LDEsMF0sW11d")
    before = len(events(file))
    done = audited.write()
    assert "events may be missing" in done.stderr + done.stdout
    assert len(events(file)) == 2 * before


def test_a_logger_gets_the_same_lines(placement: Command, tmp_path: Path) -> None:
    audited = Audited(placement, tmp_path, "audit.cadf")
    audited.change("one")
    assert "--cursor-file" in audited.write().stderr
    done = audited.write("--cursor-file", str(tmp_path / "cursor"))
    assert done.returncode == 0
    assert '"typeURI":"http://schemas.dmtf.org/cloud/audit/1.0/event"' in done.stderr + done.stdout


def test_without_a_place_there_is_nothing_to_write_to(placement: Command, tmp_path: Path) -> None:
    audited = Audited(placement, tmp_path, "")
    assert "[journal] cadf names no file" in audited.write().stderr


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("/dev/full", "/dev/full cannot be written: No space left on device."),
        ("{}/nowhere/events", "{}/nowhere/events.cursor.lock cannot be written: No such file or directory."),
        ("{}/folder", "{}/folder cannot be written: Is a directory."),
    ],
    ids=["full", "nowhere", "a directory"],
)
def test_what_cannot_be_written_is_said_in_one_line(placement: Command, tmp_path: Path, where: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    audited = Audited(placement, tmp_path, where.format(tmp_path))
    audited.change("one")
    done = audited.write(*(("--cursor-file", str(tmp_path / "cursor")) if where.startswith("/dev") else ()))
    assert (done.returncode, done.stderr) == (1, f"Error: {said.format(tmp_path)}\n")


def test_a_position_that_is_none_is_named(audited: Audited, file: Path) -> None:
    file.with_name("events.json.cursor").write_text("scribble")
    done = audited.write()
    assert done.returncode == 1
    assert done.stderr == f"Error: {file}.cursor holds no position; remove it to begin with the oldest row.\n"

"""The tasks of an operator in docs/how-to, done as their pages say, one after the other in the cloud of ``demo``."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.cli.demo import tell
from tests.api.conftest import serving
from tests.cli.commands import Command, served
from tests.cli.test_first_days import ROOT, is_as_shown, steps
from tests.databases import migrate

PAGES = (
    *("find-stranded-capacity", "explain-no-candidates"),
    *("find-who-is-on-a-host", "find-room-for-a-flavor", "find-what-changed", "find-orphans", "move-a-rack"),
    *("drain-a-host", "remove-a-dead-host"),
)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server with the cloud of ``placement demo``."""
    connection = f"sqlite:///{tmp_path / 'demo.sqlite'}"
    migrate(connection)
    with serving(connection) as api, served(api.app) as address:
        tell(address, lambda _line: None)
        yield address


def test_the_tasks_of_an_operator_go_as_their_pages_say(placement: Command, url: str) -> None:
    different = []
    for page in PAGES:
        for command, shown in steps((ROOT / "docs" / "how-to" / f"{page}.md").read_text()):
            words = shlex.split(command.replace("http://127.0.0.1:8778", url))
            if words[0] == "echo":
                (placement.home / words[-1]).write_text(f"{words[1]}\n")
            elif not is_as_shown(shown, printed := placement.run(*words[1:]).stdout):
                different.append((command, shown, printed))
    assert different == []

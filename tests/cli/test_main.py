"""The command ``placement`` itself: its help, what it imports, and what its subcommands refuse: refusals.yaml."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement.cli.main import COMMANDS
from tests.cli.commands import Command
from tests.rows_of_a_cloud import fill

REFUSALS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
PROCESSES = [
    ("--version", 0, "placement, version "),
    ("fair-share", 1, "There is no database file "),
    ("openapi", 0, '"openapi": "3.'),
]
HEAVY = ("flask", "sqlalchemy", "alembic", "gunicorn", "oslo_config", "oslo_policy", "keystonemiddleware")


def test_the_overview_names_every_command(placement: Command):
    overview = placement.run("--help").stdout
    assert [line.split()[0] for line in overview.partition("Commands:\n")[2].splitlines()] == list(COMMANDS)


@pytest.mark.parametrize(("command", "status", "said"), PROCESSES)
def test_the_command_can_be_run_from_a_shell(placement: Command, command: str, status: int, said: str):
    """The other commands are run from a shell in tests of their own."""
    done = placement.process(*command.split())
    assert done.returncode == status
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("row", REFUSALS, ids=[row["says"] for row in REFUSALS])
def test_what_cannot_be_done_is_told_in_a_sentence_and_makes_no_database(placement: Command, row: dict[str, Any]):
    if row.get("database"):
        placement.with_database(fill)
    for name, content in row.get("files", {}).items():
        (placement.home / name).parent.mkdir(parents=True, exist_ok=True)
        (placement.home / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {*placement.home.rglob("*.sqlite")}
    for command in row["run"]:
        done = placement.run(*shlex.split(command.replace("{home}", str(placement.home))))
        assert (done.returncode, done.stdout) == (row["status"], ""), command
        last = done.stderr.splitlines()[-1]
        assert last.startswith("Error: ")
        for words in (row["told"], row.get("also", "")):
            assert words.replace("{home}", str(placement.home)) in last
        assert "Traceback" not in done.stderr
    assert {*placement.home.rglob("*.sqlite")} == before


def test_the_overview_is_fast_because_it_imports_nothing_heavy():
    script = (
        "import sys; from placement.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert [name for name in HEAVY if f"'{name}'" in done.stderr] == []

"""The command ``placement`` itself: its help, and what it imports."""

import subprocess
import sys

import pytest

from placement.cli.main import COMMANDS
from tests.cli.commands import Command

NO_DATABASE = "There is no database file "
PROCESSES = [
    ("--version", 0, "placement, version "),
    ("audit", 1, NO_DATABASE),
    ("explain resources=VCPU:1", 1, NO_DATABASE),
    ("fair-share", 1, NO_DATABASE),
    ("openapi", 0, '"openapi": "3.'),
    ("db current", 1, NO_DATABASE),
    ("sreve", 2, "No such command 'sreve'. Did you mean 'serve'?"),
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


def test_a_file_that_cannot_be_written_is_named(placement: Command):
    (placement.home / "page").mkdir()
    (placement.home / "page" / "openapi.json").mkdir()
    done = placement.run("openapi", "--output", "page")
    assert (done.returncode, done.stderr) == (1, "Error: page/openapi.json cannot be used: Is a directory.\n")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("audit --known-consumers", "is not a uuid."),
        ("planner import", "This is not YAML"),
        ("flavors import", "is not JSON"),
    ],
)
def test_a_file_that_is_no_text_is_refused(placement: Command, command: str, said: str):
    (placement.home / "file").write_bytes(b"\xff\xfe\x01")
    done = placement.run(*command.split(), "file")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert said in done.stderr


def test_the_overview_is_fast_because_it_imports_nothing_heavy():
    script = (
        "import sys; from placement.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert [name for name in HEAVY if f"'{name}'" in done.stderr] == []

"""Databases that servers are created for, and the checks that an operator would run on them."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import servers
from tests.servers import Served


def configured(directory: Path, url: str, **database: str) -> Path:
    """Write a configuration for a database, migrate the database, and return the configuration's directory."""
    directory.mkdir(exist_ok=True)
    sections = servers.default_sections(url)
    sections["placement_database"] |= database
    servers.write_configuration(directory, sections)
    servers.placement_manage(servers.this_project(), directory, "db", "sync")
    return directory


def check_database(directory: Path) -> None:
    """Check that ``placement db check`` finds nothing wrong."""
    installation = servers.this_project()
    command = [installation.command("placement"), "db", "--config-file", str(directory / "placement.conf"), "check"]
    done = subprocess.run(command, env=dict(installation.variables), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Nothing is wrong.\n"), done.stdout + done.stderr


@contextlib.contextmanager
def served_as_shipped(directory: Path, *, threads: int, before: Sequence[str] = ()) -> Iterator[Served]:
    """Serve with one worker and the settings for gunicorn that this project ships.

    Args:
        directory: the configuration's directory.
        threads: how many threads serve requests.
        before: a command that runs gunicorn, whose command line follows.
    """
    port = servers.free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:placement.wsgi.gunicorn", "--workers", "1"]
    command += ["--bind", f"127.0.0.1:{port}", "--threads", str(threads), "--graceful-timeout", "2"]
    running = servers.started([*before, *command], directory, port, variables=servers.plain_environment())
    try:
        yield running
    finally:
        running.kill()

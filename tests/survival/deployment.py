"""Databases that servers are created for, and the checks that an operator would run on them."""

import subprocess
from pathlib import Path

from tests import servers


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

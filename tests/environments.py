"""Python environments created by tests, with uv, which takes a second where pip takes half a minute."""

import subprocess
import sys
from pathlib import Path

from tests.servers import plain_environment

# The pins for the tests' own environment do not apply to others.
NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_CONSTRAINT", "UV_CONSTRAINT")


def uv(*arguments: str) -> None:
    """Run uv, outside the checkout, whose directories would otherwise be found before those of an environment."""
    command = [sys.executable, "-m", "uv", *arguments]
    subprocess.run(command, cwd="/", check=True, env=plain_environment(*NOT_INHERITED))


def made_environment(directory: Path, *requirements: str) -> Path:
    """Create an environment with some packages, replacing an existing one; return its python."""
    python = directory / "bin" / "python"
    uv("venv", "--quiet", "--clear", "--python", sys.executable, str(directory))
    uv("pip", "install", "--quiet", "--python", str(python), *requirements)
    return python

"""Python environments created by tests, with uv, which takes a second where pip takes half a minute."""

import subprocess
import sys
from pathlib import Path

from tests.servers import plain_environment

# The pins of the environment that the tests run in are not meant for others.
NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_CONSTRAINT", "UV_CONSTRAINT")


def uv(*arguments: str) -> None:
    """Run uv. Not in the checkout, whose directories would be found before those of an environment."""
    command = [sys.executable, "-m", "uv", *arguments]
    subprocess.run(command, cwd="/", check=True, env=plain_environment(*NOT_INHERITED))


def made_environment(directory: Path, *requirements: str) -> Path:
    """Make an environment with some packages, in the place of one that may be there; return its python."""
    python = directory / "bin" / "python"
    uv("venv", "--quiet", "--clear", "--python", sys.executable, str(directory))
    uv("pip", "install", "--quiet", "--python", str(python), *requirements)
    return python

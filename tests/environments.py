"""Python environments created by tests, with uv, which takes a second where pip takes half a minute."""

import fcntl
import subprocess
import sys
from pathlib import Path

from tests.servers import plain_environment

# The pins for the tests' own environment do not apply to others; without bytecode each process takes seconds to start.
NOT_INHERITED = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"),
    *("PIP_CONSTRAINT", "UV_CONSTRAINT"),
)
KEPT = Path(__file__).parents[1] / ".tox"


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


def kept_environment(name: str, *requirements: str) -> Path:
    """Return the python of an environment below .tox, created the first time that somebody needs it."""
    directory, made_of = KEPT / name, "\n".join(requirements)
    finished = directory / "finished"
    KEPT.mkdir(exist_ok=True)
    # Several test processes may need it at once: the first creates it, the others wait.
    with (KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists() or finished.read_text() != made_of:
            made_environment(directory, *requirements)
            finished.write_text(made_of)
    return directory / "bin" / "python"

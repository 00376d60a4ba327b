"""A wheel built from a clean copy of the source, and an environment that contains only it and gunicorn."""

import shutil
from pathlib import Path

import pytest

from tests.environments import NOT_INHERITED, made_environment, uv
from tests.servers import Installation, plain_environment

SOURCE = Path(__file__).parents[2]
LEFT_OVER = "placement/app/__init__.py"
"""What an earlier build left in the checkout: a package that has become a module."""
# What the build needs.
PARTS = ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "setup.py", "bin", "etc", "migrations", "placement")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel file."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    copied_source(source)
    left_over = source / "build/lib" / LEFT_OVER
    left_over.parent.mkdir(parents=True)
    left_over.touch()
    uv("build", "--quiet", "--wheel", "--out-dir", str(target), str(source))
    (built,) = target.glob("*.whl")
    return built


def copied_source(target: Path) -> None:
    """Copy what the build needs into a directory."""
    for part in PARTS:
        path = SOURCE / part
        if path.is_dir():
            shutil.copytree(path, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, target / part)


@pytest.fixture(scope="session")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The environment."""
    python = made_environment(tmp_path_factory.mktemp("environment"), str(wheel))
    return Installation(python, plain_environment(*NOT_INHERITED))

"""The command in a fresh home directory."""

from pathlib import Path

import pytest

from tests.cli.commands import Command


@pytest.fixture
def placement(tmp_path: Path) -> Command:
    """The command ``placement`` with a home directory of its own."""
    return Command(tmp_path)

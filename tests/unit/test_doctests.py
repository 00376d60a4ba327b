"""Runs the examples in all docstrings."""

import doctest
import importlib
from pathlib import Path

import pytest

import placement

ROOT = Path(placement.__file__).parent
EXAMPLE = ">>> "
MODULES = sorted(
    [
        ".".join([placement.__name__, *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
        for path in ROOT.rglob("*.py")
        if EXAMPLE in path.read_text()
    ]
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_give_what_they_show(name: str) -> None:
    """An example that is not found would pass unnoticed."""
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    assert found.attempted > 0

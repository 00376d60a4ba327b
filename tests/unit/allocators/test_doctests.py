"""Runs the examples in the docstrings of the library."""

import doctest
import importlib
import pkgutil

import pytest

from placement import allocators

MODULES = sorted(module.name for module in pkgutil.walk_packages(allocators.__path__, "placement.allocators."))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_give_what_they_show(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_public_functions_of_the_strategy_fit_have_examples() -> None:
    """An example that is not found would pass unnoticed."""
    examples = doctest.testmod(importlib.import_module("placement.allocators.strategy_fit")).attempted
    assert examples >= 10

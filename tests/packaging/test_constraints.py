"""Installs this server under OpenStack's upper-constraints, as kolla, OpenStack-Ansible and devstack do.

``UPPER_CONSTRAINTS`` names a file to use in place of the pins kept here.
"""

import os
from pathlib import Path

import pytest

from tests.packaging.constraints import PINS, pins_in, resolved


def test_pip_finds_a_solution_with_what_is_pinned(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--deep"):
        pytest.skip("the environment constraints, in .ci/run, installs with these pins by uv; --deep asks pip")
    constraints = Path(os.environ.get("UPPER_CONSTRAINTS", PINS))
    pins, found = pins_in(constraints), resolved(constraints)
    assert found["sqlalchemy"] in pins["sqlalchemy"]
    assert [
        name
        for name in found.keys() & pins.keys()
        if pins[name].partition(";")[0].split("==")[1].lstrip("=") != found[name]
    ] == []

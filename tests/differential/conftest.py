"""The servers to compare, started once for all rounds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import commits
from tests.differential.sides import DATABASES, Pair, compared_projects

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("differential")
    group.addoption("--rounds", type=int, default=30, help="how many rounds (default: %(default)s)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the test with each round."""
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--rounds")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the comparison itself if it has not changed."""
    if config.getoption("--deep") or commits.is_changed(HERE):
        return
    unchanged = pytest.mark.skip(reason="tests/differential has not changed; --deep runs it")
    for item in items:
        if item.get_closest_marker("of_the_comparison"):
            item.add_marker(unchanged)


@pytest.fixture(scope="session")
def pairs() -> Iterator[list[Pair]]:
    """Compare the reference with this server on SQLite and with this server on PostgreSQL."""
    with compared_projects(DATABASES) as started:
        yield started

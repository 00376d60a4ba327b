"""The servers to compare, started once for all rounds."""

from collections.abc import Iterator

import pytest

from tests.differential.sides import DATABASES, Pair, compared_projects


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("differential")
    group.addoption("--rounds", type=int, default=30, help="how many rounds (default: %(default)s)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the test with each round."""
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--rounds")))


@pytest.fixture(scope="session")
def pairs() -> Iterator[list[Pair]]:
    """Compare the reference with this server on SQLite and with this server on PostgreSQL."""
    with compared_projects(DATABASES) as started:
        yield started

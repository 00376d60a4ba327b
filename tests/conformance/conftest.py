"""One server for each configuration and database, shared by all files; the databases are emptied between files."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import reference, servers
from tests.conformance import profiles, suite
from tests.empty_database import empty_database

DATABASES = ("sqlite", "postgresql")

EmptyServer = Callable[[str, str], str]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--all-files", action="store_true", help="run every file of the suite, not only the public list")
    group.addoption("--database", choices=(*DATABASES, "mariadb"), help="run on this database only")
    group.addoption("--server", choices=("project", "reference"), default="project", help="the server to run against")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the test with each file and database."""
    if "file" not in metafunc.fixturenames:
        return
    option = metafunc.config.getoption
    files = suite.all_files() if option("--all-files") else suite.public_files()
    metafunc.parametrize("database_kind", [option("--database")] if option("--database") else DATABASES)
    metafunc.parametrize("file", files)


@pytest.fixture(scope="session")
def empty_server(request: pytest.FixtureRequest) -> Iterator[EmptyServer]:
    """Return a function (database, profile) -> base URL of a server with an empty database."""
    running: dict[tuple[str, str], tuple[str, str]] = {}
    with contextlib.ExitStack() as stack:

        def url_of(database: str, profile: str) -> str:
            if (database, profile) not in running:
                directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
                database_url = _new_database(request, database, profile, directory)
                server = _start(stack, request.config.getoption("--server"), profile, directory, database_url)
                running[database, profile] = (server, database_url)
            server, database_url = running[database, profile]
            empty_database(database_url)
            return server

        yield url_of


def _new_database(request: pytest.FixtureRequest, database: str, profile: str, directory: Path) -> str:
    if database == "sqlite":
        return f"sqlite:///{directory / 'placement.sqlite'}"
    server = "mariadb_server" if database == "mariadb" else "postgres_server"
    url: str = request.getfixturevalue(server).database(f"conformance_{profile.replace('-', '_')}")
    return url


def _start(stack: contextlib.ExitStack, which: str, profile: str, directory: Path, database_url: str) -> str:
    if which == "reference":
        installation, sections = reference.installation(), reference.configuration(database_url)
    else:
        installation, sections = servers.this_project(), servers.default_sections(database_url)
    profiles.configure(directory, profile, servers.migrating(sections))
    return stack.enter_context(servers.running_server(installation, directory))

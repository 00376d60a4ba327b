"""Databases for every test.

``database_url`` is a fresh database with the schema, the standard names and no other rows, once on SQLite and once on
PostgreSQL, or on the kinds in the variable PYTEST_DATABASES; ``database`` is the same, opened. ``sqlite_url``,
``postgresql_url`` and ``mariadb_url`` are one of them; ``empty_database_url`` has not even tables. ``mariadb_url``
itself is for tests marked mariadb, which run where PYTEST_DATABASES names it. Nothing is started for tests that use
none of them.

A test marked any_database, or in a directory of those ABOVE_THE_STORE, proves something that does not depend on the
database, so one kind suffices; ``--deep`` runs all kinds, more examples of every property, and whatever else the
default run has no time for.
"""

import gc
import itertools
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from flask import Flask

from placement.app import create_app
from placement.settings import load
from placement.store.connection.database import Database
from placement.tuning import MANY_NEW_OBJECTS, ROUNDS_PER_OLDER_ROUND
from tests import commits, examples, last_run, mariadb
from tests.databases import Pool, SQLiteDatabases, opened_database
from tests.mariadb import MariaDB
from tests.memory import memory
from tests.postgresql import PostgreSQL, running_postgresql
from tests.recycled_mariadb import mariadb_pool
from tests.recycled_postgresql import postgresql_pool
from tests.servers import write_configuration

LONGEST = ("differential", "survival", "packaging", "concurrency", "interleavings", "conformance")
"""The directories with tests that take many seconds."""

ABOVE_THE_STORE = ("tests/api/planner", "tests/ui")
"""Directories of tests that work with rows; tests/store shows that every statement gives the same rows everywhere."""

BEGUN_AT = pytest.StashKey[float]()
"""When the run began."""

KINDS = os.environ.get("PYTEST_DATABASES", "sqlite postgresql").split()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for long and deep runs."""
    parser.addoption("--long", action="store_true", help="run the long form of the tests that have one")
    parser.addoption("--deep", action="store_true", help="leave nothing to the nightly run")
    parser.addoption("--seed", type=int, help="the seed of random requests (default: one that belongs to the commit)")


def pytest_configure(config: pytest.Config) -> None:
    """Set the number of hypothesis examples, the seed of the run, and the place for temporary files.

    These are in memory, including those of processes that tests start: SQLite waits for the disk at each commit. The
    garbage collector runs as rarely as between the requests of a server; with its default thresholds it takes a tenth
    of the time of tests/unit.
    """
    config.stash[BEGUN_AT] = time.monotonic()
    gc.set_threshold(MANY_NEW_OBJECTS, *ROUNDS_PER_OLDER_ROUND)
    if place := memory():
        tempfile.tempdir = os.environ["TMPDIR"] = str(place)
    examples.load_profile("deep" if config.getoption("--deep") else "quick")
    if config.getoption("--seed") is None:
        config.option.seed = commits.seed()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one test process more than there are cores: one of them usually waits for a server."""
    return (os.cpu_count() or 1) + 1


def pytest_report_header(config: pytest.Config) -> str:
    """Show what is needed to repeat a run."""
    return f"random requests: --seed {config.getoption('--seed')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Note the result of a nightly run."""
    outcomes = ("passed", "failed", "error", "skipped")
    counts = {outcome: len(terminalreporter.stats.get(outcome, ())) for outcome in outcomes}
    result = ", ".join([f"{count} {outcome}" for outcome, count in counts.items() if count])
    directories = [word for word in config.invocation_params.args if word.startswith("tests/")]
    part = directories[0] if len(directories) == 1 else ""
    last_run.note_run(result, time.monotonic() - config.stash[BEGUN_AT], part=part)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that none of them runs alone at the end; deselect those that other runs cover.

    Directories stay together, so that only one of the test processes starts their servers.
    """
    items.sort(key=lambda item: [item.path.parent.name != name for name in LONGEST])
    if config.getoption("--deep"):
        return
    is_long = config.getoption("--long")
    left_out = {item for item in items if _is_left_out(item) or (item.get_closest_marker("nightly") and not is_long)}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


def _is_left_out(item: pytest.Item) -> bool:
    if item.get_closest_marker("mariadb") and "mariadb" not in KINDS:
        return True
    is_above = item.nodeid.startswith(ABOVE_THE_STORE) and not item.get_closest_marker("each_database")
    kind = item.callspec.params.get("database_url") if hasattr(item, "callspec") else None
    return kind is not None and (is_above or bool(item.get_closest_marker("any_database"))) and kind != _kind_for(item)


def _kind_for(item: pytest.Item) -> str:
    """Return the kind for a test that needs only one: a fixed one for each name, distributed over all kinds."""
    name = item.nodeid
    for kind in KINDS:
        name = name.replace(kind, "")
    return KINDS[zlib.crc32(name.encode()) % len(KINDS)]


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether the long form of a test was requested."""
    return bool(request.config.getoption("--long"))


@pytest.fixture
def seeds(is_long: bool, request: pytest.FixtureRequest) -> Callable[..., range]:
    """Seeds of random clouds: ``seeds(4, times=100)`` are 4, or a hundred times as many in the long form."""
    first = 1000 * request.config.getoption("--seed")
    return lambda count, times=1: range(first, first + count * (times if is_long else 1))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgreSQL]:
    """A PostgreSQL server, one for each test process."""
    with running_postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_databases(tmp_path_factory: pytest.TempPathFactory) -> SQLiteDatabases:
    """Makes SQLite databases."""
    return SQLiteDatabases(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def postgresql_databases(postgres_server: PostgreSQL) -> Pool:
    """Lends PostgreSQL databases."""
    return postgresql_pool(postgres_server)


@pytest.fixture
def sqlite_url(sqlite_databases: SQLiteDatabases, tmp_path: Path) -> str:
    """A migrated SQLite database without data."""
    return sqlite_databases.copy(tmp_path)


@pytest.fixture
def postgresql_url(postgresql_databases: Pool) -> Iterator[str]:
    """A migrated PostgreSQL database without data."""
    url, give_back = postgresql_databases.borrow()
    yield url
    give_back()


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database without data, of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database without data, of each kind, opened."""
    with opened_database(database_url) as opened:
        yield opened


Configured = Callable[..., Flask]


@pytest.fixture
def configured(sqlite_url: str, tmp_path: Path) -> Iterator[Configured]:
    """Makes an application of sections of placement.conf: ``configured(api={"auth_strategy": "noauth2"})``."""
    with ExitStack() as running:

        def application(**sections: dict[str, str]) -> Flask:
            all_sections = {"placement_database": {"connection": sqlite_url}, **sections}
            app = create_app(load([str(write_configuration(tmp_path, all_sections))], {}, search=False))
            running.callback(app.extensions["placement"].database.dispose)
            return app

        yield application


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'empty.sqlite'}"


@pytest.fixture
def empty_postgresql_url(postgres_server: PostgreSQL, _numbers: Iterator[int]) -> Iterator[str]:
    """A PostgreSQL database without tables."""
    name = f"empty_{next(_numbers)}"
    yield postgres_server.database(name)
    postgres_server.drop(name)


@pytest.fixture(params=KINDS)
def empty_database_url(request: pytest.FixtureRequest) -> str:
    """A database without tables, of each kind."""
    url: str = request.getfixturevalue(f"empty_{request.param}_url")
    return url


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDB]:
    """A MariaDB server, one for each test process."""
    if not mariadb.SERVER.exists():
        pytest.skip(f"there is no {mariadb.SERVER} (Debian: mariadb-server)")
    with mariadb.running_mariadb() as server:
        yield server


@pytest.fixture
def empty_mariadb_url(mariadb_server: MariaDB, _numbers: Iterator[int]) -> Iterator[str]:
    """A MariaDB database without tables."""
    name = f"empty_{next(_numbers)}"
    yield mariadb_server.database(name)
    mariadb_server.drop(name)


@pytest.fixture(scope="session")
def mariadb_databases(mariadb_server: MariaDB) -> Pool:
    """Lends MariaDB databases."""
    return mariadb_pool(mariadb_server)


@pytest.fixture
def mariadb_url(mariadb_databases: Pool) -> Iterator[str]:
    """A migrated MariaDB database without data."""
    url, give_back = mariadb_databases.borrow()
    yield url
    give_back()

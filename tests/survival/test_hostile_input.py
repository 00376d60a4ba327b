"""Whatever is sent, the answer is proper, a refusal changes nothing, and no request does more than its share of work.

``--long`` sends a hundred times as many requests; ``--seed`` chooses others.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import event

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.clouds import SHARES, build, provider
from tests.concurrency.together import check_books
from tests.databases import SQLiteDatabases
from tests.empty_database import sqlite_path
from tests.planner_clouds import make_names
from tests.survival.grammar import Case, Grammar

CLAIMS = "/planner/v1/claims"
CASES = 1_000
CASES_PER_CLOUD = 500
INSTRUCTIONS_PER_TICK = 100_000
MAX_TICKS = 500
"""Fifty million steps of SQLite's virtual machine, a few seconds, for one request."""
MAX_STATEMENTS = 60
MAX_OF_A_CLAIM = 3 * MAX_STATEMENTS
"""The planner searches once more before it refuses a claim, and explains it."""
MAX_OUT_OF_STEPS = 0.01


@dataclass
class Work:
    """What one request made the database do."""

    statements: int = 0
    ticks: int = 0


@dataclass
class Target:
    """A server, an outside view of its database, and the cost of the last request."""

    api: Api
    database: Database
    outside: sqlite3.Connection
    grammar: Grammar
    work: Work = field(default_factory=Work)

    def version(self) -> int:
        """Return a number that changes whenever the server commits a change to any row."""
        number: int = self.outside.execute("PRAGMA data_version").fetchone()[0]
        return number

    def tell_generations(self) -> None:
        """Tell the grammar the current generations, as a client that reads before it writes would know them."""
        for table in ("resource_providers", "consumers"):
            self.grammar.generations.update(self.outside.execute(f"SELECT uuid, generation FROM {table}"))


def cloud(api: Api) -> Grammar:
    """Create two hosts with eight devices of two kinds each, and a shared disk."""

    def call(method, path, version, body=None):
        response = api.request(method, path, version=version, **({} if body is None else {"json": body}))
        return response.status_code, response.get_json(silent=True)

    def host(name):
        devices = [provider(f"{name} device {index}", PGPU=2, SRIOV_NET_VF=8) for index in range(8)]
        numa = provider(f"{name} numa", *devices, VCPU=16, MEMORY_MB=4096, traits=["HW_NUMA_ROOT"])
        return provider(name, numa, CUSTOM_GOLD=4, aggregates="A", traits=["CUSTOM_SHINY"])

    built = build(call, host("one"), host("two"), provider("disk", DISK_GB=100, traits=[SHARES], aggregates="A"))
    consumers = [f"00000000-0000-4000-8000-{number:012}" for number in range(6)]
    aggregates = [*built.aggregates.values(), "00000000-0000-4000-9000-000000000000"]
    return Grammar(list(built.providers.values()), consumers, aggregates)


@contextmanager
def new_target(url: str) -> Iterator[Target]:
    """Serve an empty SQLite database with a cloud in it."""
    application = create_app(
        Settings(database=DatabaseSettings(connection=url, sqlite_synchronous=False), auth_strategy="noauth2")
    )
    database = application.extensions["placement"].database
    with closing(sqlite3.connect(sqlite_path(url), timeout=30)) as outside:
        api = Api(application)
        make_names(database)
        made = Target(api, database, outside, cloud(api))
        observe(database, made.work)
        made.tell_generations()
        yield made
    database.dispose()


def observe(database: Database, work: Work) -> None:
    """Let the database count its work, and stop statements that do far too much."""

    def tick() -> bool:
        work.ticks += 1
        return work.ticks > MAX_TICKS

    @event.listens_for(database.engine, "before_cursor_execute")
    def count(connection, *_rest):
        work.statements += 1
        connection.connection.driver_connection.set_progress_handler(tick, INSTRUCTIONS_PER_TICK)


def send(target: Target, case: Case):
    return target.api.request(
        case.method,
        case.path,
        version=case.version,
        query_string=case.query,
        data=case.data,
        headers=case.headers,
    )


def ran_out_of_steps(response) -> bool:
    return response.status_code == 503 and "search limit was reached" in response.text


def test_any_request_gets_a_proper_answer_and_a_refusal_changes_nothing(
    sqlite_databases: SQLiteDatabases, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = CASES * (100 if request.config.getoption("--long") else 1)
    seed = request.config.getoption("--seed")
    statuses: Counter[int] = Counter()
    for first in range(0, count, CASES_PER_CLOUD):
        # Deleted objects are gone, so the cloud is recreated now and then.
        with new_target(sqlite_databases.copy(tmp_path)) as target:
            for number in range(first, first + CASES_PER_CLOUD):
                statuses[try_out(target, target.grammar.case(seed, number), f"--seed {seed}, number {number}")] += 1
            check_books(target.database)
    assert statuses[503] <= MAX_OUT_OF_STEPS * count
    assert min(statuses[status] for status in (200, 201, 204, 400, 403, 404, 409)) > count / 500, statuses


def try_out(target: Target, case: Case, name: str) -> int:
    """Send one request, check its outcome, and return the status."""
    version = target.version()
    target.work.statements = target.work.ticks = 0
    response = send(target, case)
    about = f"{name}: {case.method} {case.path} {case.version} {case.query[:300]}\n{response.text[:500]}"
    assert response.status_code < 500 or ran_out_of_steps(response), about
    assert target.work.statements <= (MAX_OF_A_CLAIM if case.path == CLAIMS else MAX_STATEMENTS), about
    assert target.work.ticks <= MAX_TICKS, about
    if target.version() != version:
        assert response.status_code < 300, f"it was refused, and something is committed\n{about}"
        target.tell_generations()
    return response.status_code

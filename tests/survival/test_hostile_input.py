"""Whatever is sent, the answer is proper, a refusal changes nothing, and no request does more than its share of work.

``--long`` sends a hundred times as many requests; ``--seed`` chooses others.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import event
from werkzeug.test import TestResponse

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from placement.settings.planner.sections import load_planner
from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.concurrency.together import check_books
from tests.databases import SQLiteDatabases
from tests.differential.requests import Request
from tests.differential.sides import GENERATIONS
from tests.empty_database import sqlite_path
from tests.http_calls import Answer
from tests.survival.dialogue import Dialogue
from tests.survival.hostile import draw
from tests.survival.scenes import random_scene, store

PLANNER_FILE = Path(__file__).parent / "planner.yaml"
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
    """A server, an outside view of its database, what is asked of it, and the cost of the last request."""

    api: Api
    database: Database
    outside: sqlite3.Connection
    dialogue: Dialogue
    work: Work = field(default_factory=Work)

    def version(self) -> int:
        """Return a number that changes whenever the server commits a change to any row."""
        number: int = self.outside.execute("PRAGMA data_version").fetchone()[0]
        return number

    def generation(self, kind: str, uuid: str) -> int | None:
        """Return the current generation, as a client that reads before it writes knows it."""
        return next((number for (number,) in self.outside.execute(GENERATIONS[kind], {"uuid": uuid})), None)

    def send(self, request: Request) -> TestResponse:
        """Send a request and return the answer."""
        headers = request.all_headers()
        options = {"data": request.content(), "headers": {"x-roles": "admin,service", **headers}}
        return self.api.request(request.method, request.target(), version=request.version or "1.0", **options)


@contextmanager
def new_target(url: str, directory: Path, chance: Random) -> Iterator[Target]:
    """Serve a SQLite database with a random cloud in it."""
    scene, file = random_scene(chance), directory / "planner.yaml"
    file.write_text(PLANNER_FILE.read_text().replace("DEFAULT", "ai"))
    stored = DatabaseSettings(connection=url, sqlite_synchronous=False)
    application = create_app(Settings(database=stored, auth_strategy="noauth2", planner=load_planner(file)))
    database = application.extensions["placement"].database
    store(database, scene.rows)
    with closing(sqlite3.connect(sqlite_path(url), timeout=30)) as outside:
        target = Target(Api(application), database, outside, Dialogue(scene.world))
        for request in scene.opening:
            target.send(request.resolved(target.generation))
        observe(database, target.work)
        yield target
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


def ran_out_of_steps(response: TestResponse) -> bool:
    return response.status_code == 503 and "search limit was reached" in response.text


def test_any_request_gets_a_proper_answer_and_a_refusal_changes_nothing(
    sqlite_databases: SQLiteDatabases, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = CASES * (100 if request.config.getoption("--long") else 1)
    seed = request.config.getoption("--seed")
    statuses: Counter[int] = Counter()
    for first in range(0, count, CASES_PER_CLOUD):
        # Deleted objects are gone, so the cloud is recreated now and then.
        with new_target(sqlite_databases.copy(tmp_path), tmp_path, Random(f"{seed}:{first}")) as target:
            for number in range(first, first + CASES_PER_CLOUD):
                request_drawn = draw(target.dialogue).resolved(target.generation)
                statuses[try_out(target, request_drawn, f"--seed {seed}, number {number}")] += 1
            check_books(target.database)
    assert statuses[503] <= MAX_OUT_OF_STEPS * count
    assert min(statuses[status] for status in (200, 201, 204, 400, 403, 404, 409)) > count / 500, statuses


def try_out(target: Target, request: Request, name: str) -> int:
    """Send one request, check its outcome, and return the status."""
    version = target.version()
    target.work.statements = target.work.ticks = 0
    response = target.send(request)
    about = f"{name}: {request.method} {request.target()[:500]} {request.version}\n{response.text[:500]}"
    assert response.status_code < 500 or ran_out_of_steps(response), about
    assert target.work.statements <= (MAX_OF_A_CLAIM if request.path == CLAIMS else MAX_STATEMENTS), about
    assert target.work.ticks <= MAX_TICKS, about
    if target.version() != version:
        assert response.status_code < 300, f"it was refused, and something is committed\n{about}"
    target.dialogue.learn(request, Answer(response.status_code, {}, response.data))
    return response.status_code

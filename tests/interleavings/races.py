"""Races of a few writes on real servers and one database, and what is wrong with their outcome."""

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import psycopg
from flask import Flask
from sqlalchemy import make_url, text

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from placement.store.connection.database import Database
from placement.store.connection.engines import engine_for
from placement.store.lifecycle.opening import normalised
from placement.store.tables import metadata
from tests.concurrency.together import check_books
from tests.interleavings.lock_waits import LockWaits, MariaDBWaits, PostgreSQLWaits, SQLiteWaits
from tests.interleavings.operations import Request, request_of
from tests.interleavings.orders import as_recorded, at_random, every_order, in_turn
from tests.interleavings.scene import Scene, State, send
from tests.interleavings.scheduler import Choose, Scheduler
from tests.interleavings.statements import Step, neighbours

TRIGGERS = [
    ("allocations", "provider_usages"),
    ("allocations", "resource_providers"),
    ("inventories", "provider_usages"),
    ("resource_providers", "provider_usages"),
]
"""What keeps usages up to date; the journal only grows, so the order of its rows does not matter."""

LOST_RACE = (409, "placement.concurrent_update")
BUSY = 503


class Answer(NamedTuple):
    """A status, and the code of the error if there is one."""

    status: int
    code: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a race.

    Args:
        answers: what each request was answered.
        state: what is in the database afterwards.
        order: the requests in the order of their steps; together with their names it repeats the race.
        steps: the steps.
    """

    answers: tuple[Answer, ...]
    state: State
    order: tuple[int, ...]
    steps: Sequence[Step]

    @property
    def effect(self) -> tuple[tuple[Answer, ...], State]:
        """What clients can see."""
        return self.answers, self.state


@dataclass(frozen=True, slots=True)
class Fault:
    """An outcome that no order of whole requests explains."""

    names: tuple[str, ...]
    database: str
    outcome: Outcome
    reason: str

    def __str__(self) -> str:
        order = ",".join(map(str, self.outcome.order))
        statuses = ", ".join(f"{answer.status}" for answer in self.outcome.answers)
        command = f"python -m tests.interleavings {' '.join(self.names)} --database {self.database} --order {order}"
        steps = [f"  {step.request} {' '.join(step.text.split())[:100]}" for step in self.outcome.steps]
        return "\n".join([f"{self.reason} ({statuses}): {command}", *steps])


class Arena:
    """Servers on one database, one for each request of a race: like the processes of one server, they share nothing."""

    def __init__(self, url: str, waits: LockWaits, *, servers: int = 3) -> None:
        self._scheduler = Scheduler(waits, neighbours(metadata, TRIGGERS))
        settings = Settings(database=DatabaseSettings(connection=url), auth_strategy="noauth2")
        self._apps = [create_app(settings) for _ in range(servers)]
        for app in self._apps:
            self._scheduler.watch(_database(app).engine)
        self._runs = itertools.count()

    @property
    def kind(self) -> str:
        """The kind of its database, as ``python -m tests.interleavings`` calls it."""
        dialect = _database(self._apps[0]).dialect
        return "mariadb" if dialect == "mysql" else dialect

    def race(self, names: Sequence[str], choose: Choose) -> Outcome:
        """Run requests in a cloud of their own."""
        scene = Scene(next(self._runs))
        scene.build(self._apps[0])
        calls = [self._call(app, request_of(name, scene)) for app, name in zip(self._apps, names, strict=False)]
        answers, steps = self._scheduler.run(calls, choose)
        state = scene.state(_database(self._apps[0]))
        return Outcome(tuple(answers), state, tuple(step.request for step in steps), steps)

    def check_books(self) -> None:
        """Check what has to hold after all races."""
        check_books(_database(self._apps[0]))

    def close(self) -> None:
        """Close all connections."""
        for app in self._apps:
            _database(app).dispose()

    def _call(self, app: Flask, request: Request) -> Callable[[], Answer]:
        def call() -> Answer:
            status, document = send(app, request.method, request.path, version=request.version, body=request.body)
            errors = document.get("errors") if isinstance(document, dict) else None
            return Answer(status, errors[0].get("code") if errors else None)

        return call


def _database(app: Flask) -> Database:
    database: Database = app.extensions["placement"].database
    return database


class Judge:
    """Knows what requests may lead to: what they lead to one after the other, in any order.

    A request that lost a race says so, and has then done nothing.
    """

    def __init__(self, arena: Arena, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._database = arena.kind
        numbers = range(len(names))
        self._serial = {arena.race(names, in_turn(order)).effect for order in itertools.permutations(numbers)}
        self._states_without = {
            left_out: self._without(arena, left_out)
            for size in numbers[1:]
            for left_out in itertools.combinations(numbers, size)
        }

    def _without(self, arena: Arena, left_out: tuple[int, ...]) -> set[State]:
        names = [name for number, name in enumerate(self._names) if number not in left_out]
        return {arena.race(names, in_turn(order)).state for order in itertools.permutations(range(len(names)))}

    def fault(self, outcome: Outcome) -> Fault | None:
        """Return what is wrong with an outcome, if anything is."""
        if outcome.effect in self._serial:
            return None
        if any(answer.status >= 500 for answer in outcome.answers):
            return Fault(self._names, self._database, outcome, "failed")
        losers = tuple(number for number, answer in enumerate(outcome.answers) if answer == LOST_RACE)
        if outcome.state in self._states_without.get(losers, ()):
            return None
        return Fault(self._names, self._database, outcome, "no order of whole requests has this outcome")


def races_of(arena: Arena, names: Sequence[str]) -> Iterator[Fault | None]:
    """Yield the verdict on each order of the steps of some requests that can make a difference."""
    judge = Judge(arena, names)
    for outcome in every_order(lambda choose: arena.race(names, choose)):
        yield judge.fault(outcome)


def random_races_of(arena: Arena, names: Sequence[str], *, seed: int, rounds: int) -> Iterator[Fault | None]:
    """Yield the verdict on some random orders."""
    judge = Judge(arena, names)
    for number in range(rounds):
        choice = random.Random(f"{seed} {names} {number}")
        yield judge.fault(arena.race(names, at_random(choice)))


def repeated(arena: Arena, names: Sequence[str], order: Sequence[int]) -> Fault | None:
    """Return the verdict on one order."""
    return Judge(arena, names).fault(arena.race(names, as_recorded(order)))


DEADLOCK_TIMEOUT_MS = 20
"""PostgreSQL looks for deadlocks after so long; by default it takes a second."""


@contextlib.contextmanager
def opened_arena(url: str) -> Iterator[Arena]:
    """Start servers on a migrated database, and check at the end what has to hold after all races."""
    kind = make_url(url).get_backend_name()
    with _WAITS[kind](url) as waits:
        arena = Arena(_impatient(url) if kind == "postgresql" else url, waits)
        try:
            yield arena
            arena.check_books()
        finally:
            arena.close()


def _impatient(url: str) -> str:
    return url + ("&" if "?" in url else "?") + f"options=-c%20deadlock_timeout%3D{DEADLOCK_TIMEOUT_MS}"


@contextlib.contextmanager
def _postgresql(url: str) -> Iterator[LockWaits]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield PostgreSQLWaits(lambda query: connection.execute(query).fetchall())


@contextlib.contextmanager
def _mariadb(url: str) -> Iterator[LockWaits]:
    engine = engine_for(normalised(url))
    with engine.connect() as connection:
        yield MariaDBWaits(lambda query: list(connection.execute(text(query))))
    engine.dispose()


@contextlib.contextmanager
def _sqlite(_url: str) -> Iterator[LockWaits]:
    yield SQLiteWaits()


_WAITS: dict[str, Callable[[str], contextlib.AbstractContextManager[LockWaits]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mysql": _mariadb,
}

"""Sessions that write concurrently, as random SQL, roll back, deadlock and are killed.

A transaction is sent as one text, so that a hundred thousand of them take minutes: statement by statement, most of the
time passes between an answer and the next statement. Some are sent that way nevertheless, because their writes stay
uncommitted for longer while others overtake them.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pymysql
from pymysql.constants.CLIENT import MULTI_STATEMENTS
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from placement.store.connection.database import Database
from placement.store.kept_usage import GATE_SETTING, WRITE_GATE_KEY

PROVIDERS = 6
WRITERS = 4
SLOWLY = 0.1
"""The share of transactions that are sent statement by statement."""

_BEGIN = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": (
        "BEGIN ISOLATION LEVEL READ COMMITTED",
        # By default it looks for deadlocks after a second, which would take most of the time.
        "SET LOCAL deadlock_timeout = '10ms'",
        f"SELECT set_config('{GATE_SETTING}', 'passed', true), pg_advisory_xact_lock_shared({WRITE_GATE_KEY})",
    ),
    "mysql": ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"),
}

_SESSIONS = {
    "postgresql": (
        """SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND state <> 'idle' AND query LIKE '%INSERT INTO allocations%'""",
        "SELECT pg_terminate_backend({})",
    ),
    "mysql": (
        """SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()
        AND info LIKE '%INSERT INTO allocations%'""",
        "KILL {}",
    ),
}
"""How to find and end sessions at work."""


class RacingWriters:
    """Writers at work in threads, and a thread that kills their sessions.

    Args:
        database: the database they write to.
        count: the total number of transactions.
    """

    def __init__(self, database: Database, count: int) -> None:
        self._database = database
        self.committed = 0
        self._counting = threading.Lock()
        self._done = threading.Event()
        self._writers = [threading.Thread(target=self._write, args=(seed, count // WRITERS)) for seed in range(WRITERS)]
        # A killed session costs its successor more than a hundred transactions.
        pause_s = 0.05 if count < 10_000 else 1
        self._killer = threading.Thread(target=self._kill_some, args=(pause_s,))

    def start(self) -> None:
        """Start the threads."""
        for thread in [*self._writers, *([self._killer] if self._database.dialect in _SESSIONS else [])]:
            thread.start()

    @property
    def are_at_work(self) -> bool:
        """Whether any writer is still running."""
        return any(writer.is_alive() for writer in self._writers)

    def end(self) -> None:
        """Wait until all writers have finished."""
        for writer in self._writers:
            writer.join()
        self._done.set()
        if self._killer.ident:
            self._killer.join()

    def _write(self, seed: int, count: int) -> None:
        choice = random.Random(seed)
        session = _Session(self._database)
        committed = 0
        for number in range(count):
            statements = [*_statements(choice, f"{'abcdefgh'[seed]}{number}")]
            is_kept = choice.random() < 0.8
            was_sent = session.send([*statements, "COMMIT" if is_kept else "ROLLBACK"], slowly=choice.random() < SLOWLY)
            committed += is_kept and was_sent
        session.close()
        with self._counting:
            self.committed += committed

    def _kill_some(self, pause_s: float) -> None:
        query, kill = _SESSIONS[self._database.dialect]
        while not self._done.wait(pause_s):
            with self._database.engine.connect() as connection:
                for victim in connection.execute(text(query)).scalars().all()[:1]:
                    with suppress(DBAPIError):
                        connection.execute(text(kill.format(victim)))


def _statements(choice: random.Random, name: str) -> Iterator[str]:
    """Yield the statements of a transaction, which may first delete consumers, or allocations, of the same writer."""
    if choice.random() < 0.4:
        yield f"DELETE FROM allocations WHERE consumer_id LIKE '{name[0]}%' AND id % 3 = {choice.randint(0, 2)}"
    if choice.random() < 0.1:
        yield f"DELETE FROM consumers WHERE uuid LIKE '{name[0]}%' AND id % 3 = {choice.randint(0, 2)}"
    spots = {choice.randint(1, PROVIDERS): choice.randint(1, 5) for _ in range(choice.randint(1, 3))}
    for provider, amount in spots.items():
        yield (
            "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
            f"VALUES ({provider}, 0, '{name}', {amount})"
        )
    if choice.random() < 0.5:
        yield "SAVEPOINT made"
        yield f"INSERT INTO consumers (uuid, project_id, user_id) VALUES ('{name}', {choice.randint(1, 3)}, 1)"
        yield ("ROLLBACK TO" if choice.random() < 0.3 else "RELEASE") + " SAVEPOINT made"
    for provider in sorted(spots):
        yield f"UPDATE resource_providers SET generation = generation + 1 WHERE id = {provider}"


class _Session:
    """A database session that is reopened when it is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Any = None

    def send(self, statements: list[str], *, slowly: bool) -> bool:
        """Send a transaction, and return whether it completed."""
        statements = [*_BEGIN[self._database.dialect], *statements]
        with self._database.writer_lock:
            try:
                self._connection = self._connection or self._opened()
                for script in statements if slowly else ["; ".join(statements)]:
                    self._run(script)
            except self._database.engine.dialect.dbapi.Error:  # a deadlock, or it was killed
                self._roll_back()
                return False
        return True

    def _opened(self) -> Any:
        engine = self._database.engine
        if self._database.dialect == "mysql":
            _, named = engine.dialect.create_connect_args(engine.url)
            return pymysql.connect(**named | {"client_flag": MULTI_STATEMENTS, "autocommit": True})
        connection = engine.raw_connection()
        connection.detach()
        if self._database.dialect == "postgresql":
            connection.dbapi_connection.autocommit = True
        return connection.dbapi_connection

    def _run(self, script: str) -> None:
        if self._database.dialect == "sqlite":
            self._connection.executescript(script)
            return
        with self._connection.cursor() as cursor:
            cursor.execute(script)
            while self._database.dialect == "mysql" and cursor.nextset():
                pass

    def _roll_back(self) -> None:
        try:
            self._run("ROLLBACK")
        except self._database.engine.dialect.dbapi.Error:
            self.close()

    def close(self) -> None:
        """Discard the connection."""
        if self._connection is not None:
            with suppress(self._database.engine.dialect.dbapi.Error):
                self._connection.close()
        self._connection = None

"""Sessions that write concurrently, as random SQL, roll back, deadlock and are killed."""

import random
import threading
from collections.abc import Iterator
from contextlib import suppress

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from placement.store.connection.database import Database
from tests.store.rows import opened, run

PROVIDERS = 6
WRITERS = 4

_IMPATIENTLY = {"postgresql": ("SET LOCAL deadlock_timeout = '10ms'",)}
"""By default PostgreSQL looks for deadlocks after a second, which would take most of the time."""

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
        self._done = threading.Event()
        self._writers = [threading.Thread(target=self._write, args=(seed, count // WRITERS)) for seed in range(WRITERS)]
        # A killed session costs its successor more than a hundred transactions.
        pause_s = 0.05 if count < 10_000 else 1
        self._killer = threading.Thread(target=self._kill_some, args=(pause_s,))

    def start(self) -> None:
        """Start the threads."""
        for thread in [*self._writers, self._killer]:
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
        self._killer.join()

    def _write(self, seed: int, count: int) -> None:
        choice = random.Random(seed)
        for number in range(count):
            statements = _statements(choice, f"{'abcdefgh'[seed]}{number}")
            is_kept = choice.random() < 0.8
            with suppress(DBAPIError), opened(self._database) as connection:  # a deadlock, or it was killed
                run(connection, *_IMPATIENTLY.get(self._database.dialect, ()), *statements)
                if is_kept:
                    connection.commit()

    def _kill_some(self, pause_s: float) -> None:
        while self._database.dialect in _SESSIONS and not self._done.wait(pause_s):
            query, kill = _SESSIONS[self._database.dialect]
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

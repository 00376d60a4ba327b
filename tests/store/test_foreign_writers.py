"""What others write while a provider moves is attributed to its actual tree, whoever commits first.

This server locks a provider before it writes the provider's data. The reference, an operator or a script may write
without the lock: the journal's row then names the provider's tree as committed at that time.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from placement.cloud.columns import CloudColumns
from placement.services.tree_history import TreeHistory
from placement.store import kept_usage
from placement.store.connection.database import Database
from placement.store.connection.engines import engine_for
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.lifecycle.opening import normalised
from placement.store.search.cloud_rows import cloud_rows
from tests.store.rows import DISK_GB, MEMORY_MB, VCPU, add_providers, allocate, run, stocking
from tests.store.sums import assert_same_cloud

ROOTS, BELOW = 3, 9
MAX_S = 20.0

MOVE = f"UPDATE resource_providers SET root_provider_id = 2, parent_provider_id = 2 WHERE id = {BELOW}"
WRITES = {
    "takes": "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
    f"VALUES ({BELOW}, {VCPU}, 'new', 3)",
    "takes more": f"UPDATE allocations SET used = used + 1 WHERE resource_provider_id = {BELOW}",
    "gives back": f"DELETE FROM allocations WHERE resource_provider_id = {BELOW}",
    "adds an inventory": stocking((BELOW, DISK_GB), total=70),
    "changes an inventory": f"UPDATE inventories SET total = total + 5 WHERE resource_provider_id = {BELOW}",
    "drops an inventory": f"DELETE FROM inventories WHERE resource_provider_id = {BELOW} AND total = 100",
    "gives a trait": f"INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES ({BELOW}, 2)",
    "takes a trait": f"DELETE FROM resource_provider_traits WHERE resource_provider_id = {BELOW}",
    "joins an aggregate": "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) "
    f"VALUES ({BELOW}, 7)",
    "leaves all aggregates": f"DELETE FROM resource_provider_aggregates WHERE resource_provider_id = {BELOW}",
}


def _joined(table: str, *columns: str) -> str:
    shown = " || ' ' || ".join(columns)
    return (
        f"SELECT root_provider_id, '{table} ' || {shown} FROM resource_providers p "
        f"JOIN {table} ON {table}.resource_provider_id = p.id"
    )


HOLDINGS = text(
    " UNION ALL ".join(
        [
            _joined("allocations", "consumer_id", "resource_class_id", "used"),
            _joined("inventories", "resource_class_id", "total"),
            _joined("resource_provider_traits", "trait_id"),
            _joined("resource_provider_aggregates", "aggregate_id"),
            "SELECT root_provider_id, 'provider ' || id FROM resource_providers",
        ]
    )
)


class Picture:
    """A cache of the contents of each tree, which reads only the trees reported as changed."""

    def __init__(self) -> None:
        self._history = TreeHistory()
        self._number = 0
        self._held: dict[int, list[str]] = {}
        self.read_anew = 0

    def in_snapshot(self, tx: Transaction) -> None:
        """Update the cache, and compare it and the sums of all trees with the snapshot itself."""
        version = self._history.version(tx)
        assert version is not None
        changed = self._history.changed(self._number, version.number)
        self._number = version.number
        held = _held(tx)
        if changed is None:
            self.read_anew += 1
            self._held = held
        else:
            self._held = _with(self._held, held, changed.roots)
        assert self._held == held
        assert_same_cloud(self._history.columns(tx, version), CloudColumns.from_rows(cloud_rows(tx)))


def _held(tx: Transaction) -> dict[int, list[str]]:
    held: dict[int, list[str]] = {}
    for root, what in sorted(tx.tuples(HOLDINGS)):
        held.setdefault(root, []).append(what)
    return held


def _with(before: dict[int, list[str]], now: dict[int, list[str]], changed: frozenset[int]) -> dict[int, list[str]]:
    others = {root: held for root, held in before.items() if root not in changed}
    return {**others, **{root: held for root, held in now.items() if root in changed}}


@reads
def assert_current(tx: Transaction, picture: Picture) -> None:
    picture.in_snapshot(tx)


@pytest.fixture(params=["kept usage", "summed usage"])
def cloud(request: pytest.FixtureRequest, postgresql_url: str) -> Iterator[Database]:
    """Three trees. Triggers that keep usage lock the provider of an allocation; without them nothing does."""
    keeps_usage = request.param == "kept usage"
    opened = Database(engine_for(normalised(postgresql_url)), keeps_usage=keeps_usage)
    with opened.writer.begin() as connection:
        if not keeps_usage:
            kept_usage.remove(connection)
        for provider in add_providers(connection, ROOTS):
            run(connection, stocking((provider, VCPU), total=100))
    yield opened
    opened.dispose()


def begin_anew(connection: Connection) -> None:
    """Recreate a nested provider in the first tree, with data of every kind."""
    tables = ("allocations", "inventories", "resource_provider_traits", "resource_provider_aggregates")
    run(
        connection,
        *[f"DELETE FROM {table} WHERE resource_provider_id = {BELOW}" for table in tables],
        f"DELETE FROM resource_providers WHERE id = {BELOW}",
        "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id) "
        f"VALUES ({BELOW}, 'below', 'below', 0, 1, 1)",
        stocking((BELOW, VCPU), total=100),
        stocking((BELOW, MEMORY_MB), total=1000),
        f"INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES ({BELOW}, 1)",
        f"INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) VALUES ({BELOW}, 5)",
    )
    allocate(connection, "old", {(BELOW, VCPU): 2, (BELOW, MEMORY_MB): 20})


class Session:
    """A writing session in a separate thread, because it may have to wait for another."""

    def __init__(self, database: Database, isolation: str) -> None:
        self._connection: Connection = database.engine.connect().execution_options(isolation_level=isolation)
        self._thread = ThreadPoolExecutor(1)
        self.pid = self._connection.scalar(text("SELECT pg_backend_pid() FROM resource_providers"))
        """Reading it takes a snapshot, which lasts for the whole transaction under REPEATABLE READ."""

    def sends(self, statement: str) -> Future[Any]:
        """Start a statement."""
        return self._thread.submit(self._connection.execute, text(statement))

    def commits(self) -> None:
        """Commit the transaction."""
        self._connection.commit()

    def close(self) -> None:
        """Roll back and disconnect."""
        self._thread.shutdown()
        self._connection.close()


def is_done(sent: Future[Any], session: Session, database: Database) -> bool:
    """Wait until a statement is done or blocked by another transaction; return whether it is done."""
    for _ in range(int(MAX_S / 0.01)):
        with suppress(NotYet):
            sent.result(timeout=0.01)
            return True
        with database.reader.connect() as connection:
            if connection.scalar(text(f"SELECT cardinality(pg_blocking_pids({session.pid}))")):
                return False
    raise AssertionError("it is neither done nor waits")


class Race:
    """The provider moves while another session writes its data.

    Args:
        database: the database.
        write: the other session's statement.
        isolation: its isolation level.
    """

    def __init__(self, database: Database, write: str, isolation: str) -> None:
        self._database = database
        self._statements = {"move": MOVE, "write": write}
        self._sessions = {"move": Session(database, "READ COMMITTED"), "write": Session(database, isolation)}

    def run(self, picture: Picture, *, first: str, commits: str) -> None:
        """Run both, one beginning and one committing before the other; a blocked one commits last in any case."""
        second = _OTHER[first]
        try:
            self._begin(first).result(timeout=MAX_S)
            sent = self._begin(second)
            order = [commits, _OTHER[commits]] if is_done(sent, self._sessions[second], self._database) else None
            assert_current(self._database, picture)
            for name in order or [first, second]:
                with suppress(OperationalError):  # PostgreSQL refuses writes based on a stale snapshot.
                    if name == second:
                        sent.result(timeout=MAX_S)
                    self._sessions[name].commits()
                assert_current(self._database, picture)
        finally:
            for session in self._sessions.values():
                session.close()

    def _begin(self, name: str) -> Future[Any]:
        return self._sessions[name].sends(self._statements[name])


_OTHER = {"move": "write", "write": "move"}


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_while_its_provider_moves_counts_where_that_is(cloud: Database, write: str) -> None:
    picture = Picture()
    for isolation, first, commits in product(("READ COMMITTED", "REPEATABLE READ"), _OTHER, _OTHER):
        with cloud.writer.begin() as connection:
            begin_anew(connection)
        assert_current(cloud, picture)
        Race(cloud, WRITES[write], isolation).run(picture, first=first, commits=commits)
    assert picture.read_anew == 1

"""What others write while a provider moves is attributed to its actual tree, whoever commits first.

This server locks a provider before it writes the provider's data. The reference, an operator or a script may write
without the lock: the journal's row then names the provider's tree as committed at that time.
"""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from placement.services.cloud_cache import cloud_in
from placement.store import kept_usage
from placement.store.connection.database import Database, Transaction, reads
from placement.store.connection.engines import engine_for
from placement.store.lifecycle.opening import normalised
from tests.store.rows import DISK_GB, MEMORY_MB, VCPU, add_hosts, allocate, making, run, stocking
from tests.store.snapshots import assert_as_stored

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


@dataclass
class LastSnapshot:
    """What each tree held in the snapshot before, and its number among the states of the cloud."""

    number: int = 0
    held: dict[int, list[str]] = field(default_factory=dict)


@reads
def assert_current(tx: Transaction, last: LastSnapshot) -> None:
    """Each tree that differs from the last snapshot counts as changed, and what is kept is as stored."""
    version = cloud_in(tx).version
    assert version is not None
    changed, held = version.changed_since(last.number), defaultdict[int, list[str]](list)
    for root, what in sorted(tx.tuples(HOLDINGS)):
        held[root].append(what)
    if last.number:
        assert changed is not None
        assert changed.roots >= {root for root in held.keys() | last.held.keys() if held[root] != last.held.get(root)}
    assert_as_stored(tx)
    last.number, last.held = version.number, held


@pytest.fixture(params=["kept usage", "summed usage"])
def cloud(request: pytest.FixtureRequest, postgresql_url: str) -> Iterator[Database]:
    """Three trees. Triggers that keep usage lock the provider of an allocation; without them nothing does."""
    keeps_usage = request.param == "kept usage"
    opened = Database(engine_for(normalised(postgresql_url)), keeps_usage=keeps_usage)
    if not keeps_usage:
        with opened.writer.begin() as connection:
            kept_usage.remove(connection)
    add_hosts(opened, ROOTS, vcpus=100)
    yield opened
    opened.dispose()


def begin_anew(connection: Connection) -> None:
    """Recreate a nested provider in the first tree, with data of every kind."""
    tables = ("allocations", "inventories", "resource_provider_traits", "resource_provider_aggregates")
    run(
        connection,
        *[f"DELETE FROM {table} WHERE resource_provider_id = {BELOW}" for table in tables],
        f"DELETE FROM resource_providers WHERE id = {BELOW}",
        making(BELOW, root=1, parent=1),
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


_OTHER = {"move": "write", "write": "move"}


def race(database: Database, write: str, last: LastSnapshot, *, isolation: str, first: str, commits: str) -> None:
    """Move the provider while another session writes: who begins first, and who commits first unless it has to wait."""
    statements = {"move": MOVE, "write": write}
    sessions = {"move": Session(database, "READ COMMITTED"), "write": Session(database, isolation)}
    second = _OTHER[first]
    try:
        sessions[first].sends(statements[first]).result(timeout=MAX_S)
        sent = sessions[second].sends(statements[second])
        order = [commits, _OTHER[commits]] if is_done(sent, sessions[second], database) else [first, second]
        assert_current(database, last)
        for name in order:
            with suppress(OperationalError):  # PostgreSQL refuses writes based on a stale snapshot.
                if name == second:
                    sent.result(timeout=MAX_S)
                sessions[name].commits()
            assert_current(database, last)
    finally:
        for session in sessions.values():
            session.close()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_written_while_its_provider_moves_counts_where_that_is(cloud: Database, write: str) -> None:
    last = LastSnapshot()
    for isolation, first, commits in product(("READ COMMITTED", "REPEATABLE READ"), _OTHER, _OTHER):
        with cloud.writer.begin() as connection:
            begin_anew(connection)
        assert_current(cloud, last)
        race(cloud, write, last, isolation=isolation, first=first, commits=commits)

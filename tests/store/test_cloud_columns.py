"""The columns of the cloud that a worker keeps equal the rows of each snapshot, whoever writes what."""

from collections.abc import Iterator
from contextlib import nullcontext
from random import Random

import pytest
from sqlalchemy import Connection, event, text

from placement.cloud.columns import CloudColumns
from placement.services.cloud_cache import cloud_in
from placement.services.tree_history import TreeHistory
from placement.store.connection.database import Database
from placement.store.connection.engines import engine_for
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.lifecycle.opening import normalised
from placement.store.locks import pass_write_gate
from placement.store.search.cloud_rows import cloud_rows
from placement.store.search.names import names_in
from tests.store.conftest import THREE_KINDS
from tests.store.rows import (
    DISK_GB,
    MEMORY_MB,
    VCPU,
    add_providers,
    allocate,
    by_request,
    delete_provider,
    run,
    stocking,
)
from tests.store.sums import assert_same_cloud

ROOTS, BELOW, SLOW, EVENTS = 6, 6, 50, 60
USE = "resource_provider_id, resource_class_id, consumer_id, used"
RATIOS = (1.0, 1.5, 0.1, 1.1, 16.123456789012345, 3.0000000000000004)


@pytest.fixture(params=[*THREE_KINDS, "postgresql by SQLAlchemy"])
def cloud(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Some trees of two providers each, and one for a slow transaction."""
    url = normalised(request.getfixturevalue(f"{request.param.partition(' ')[0]}_url"))
    plain = request.param.endswith("SQLAlchemy")
    opened = Database(engine_for(url, sqlite_synchronous=False, plain_sqlalchemy=plain))
    with opened.writer.begin() as connection:
        for provider in add_providers(connection, ROOTS):
            run(connection, stocking((provider, VCPU), total=100), stocking((provider, MEMORY_MB), total=1000))
            _add_below(connection, provider + ROOTS, provider)
        run(
            connection,
            "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) "
            f"VALUES ({SLOW}, 'slow', 'slow', 0, {SLOW})",
            stocking((SLOW, VCPU), total=100),
        )
    yield opened
    opened.dispose()


def _add_below(connection: Connection, id_: int, root: int) -> None:
    columns = "id, uuid, name, generation, root_provider_id, parent_provider_id"
    run(
        connection,
        f"INSERT INTO resource_providers ({columns}) VALUES ({id_}, '{id_}', '{id_}', 0, {root}, {root})",
        stocking((id_, VCPU), total=50),
    )


@reads
def assert_known(tx: Transaction) -> None:
    """Compare the columns, and the names of providers, with the rows of the same snapshot."""
    _compare(tx)


def _compare(tx: Transaction) -> None:
    columns, rows = cloud_in(tx).columns, CloudColumns.from_rows(cloud_rows(tx))
    assert_same_cloud(columns, rows)
    roots = rows.providers.roots.tolist()
    known = cloud_in(tx).names.of_trees(roots)
    assert {root: known[root] for root in roots} == names_in(tx, roots)


class Events:
    """Random changes to trees, one transaction at a time.

    Args:
        database: the database.
        choice: chooses them.
    """

    def __init__(self, database: Database, choice: Random) -> None:
        self._database = database
        self.choice = choice

    def one(self) -> None:
        """Make one to three changes at once, including some that this server's requests cannot make."""
        kinds = [self.allocate] * 3 + [self.give_back, self.change_use, self.tidy] + [self.restock] * 2
        kinds += [self.choice.choice([self.drop, self.add_class, self.move, self.come_or_go, self.mark, self.rename])]
        is_own = self.choice.random() < 0.75
        if not is_own:
            kinds += [self.allocate_anywhere] * 5 + [self.choice.choice([self.drop, self.lose_journal])]
        with by_request() if is_own else nullcontext(), self._database.writer.begin() as connection:
            pass_write_gate(connection)
            for kind in self.choice.sample(kinds, self.choice.choice([1, 1, 1, 2, 3])):
                kind(connection)

    def _some(self) -> str:
        providers = self.choice.sample(range(1, ROOTS + BELOW + 3), 3)
        return f"resource_provider_id IN ({', '.join(map(str, providers))})"

    def allocate(self, connection: Connection) -> None:
        rows = f"SELECT resource_provider_id, resource_class_id, 'c', 1 + id % 3 FROM inventories WHERE {self._some()}"
        run(connection, f"INSERT INTO allocations ({USE}) {rows}")

    def allocate_anywhere(self, connection: Connection) -> None:
        spot = self.choice.randint(1, ROOTS + BELOW), self.choice.choice([VCPU, MEMORY_MB, DISK_GB])
        if connection.scalar(text(f"SELECT id FROM resource_providers WHERE id = {spot[0]}")):
            allocate(connection, "anybody", {spot: 7})

    def tidy(self, connection: Connection) -> None:
        run(connection, "DELETE FROM allocations WHERE consumer_id = 'anybody'")

    def give_back(self, connection: Connection) -> None:
        run(connection, f"DELETE FROM allocations WHERE {self._some()} AND id % 2 = 0")

    def change_use(self, connection: Connection) -> None:
        run(connection, f"UPDATE allocations SET used = used + 1 WHERE {self._some()} AND id % 3 = 0")

    def restock(self, connection: Connection) -> None:
        values = f"total = total + 5, reserved = id % 3, allocation_ratio = {self.choice.choice(RATIOS)}"
        run(connection, f"UPDATE inventories SET {values} WHERE {self._some()}")

    def drop(self, connection: Connection) -> None:
        run(connection, f"DELETE FROM inventories WHERE {self._some()} AND id % 2 = 0")

    def add_class(self, connection: Connection) -> None:
        provider, class_id = self.choice.randint(1, ROOTS + BELOW), self.choice.choice([VCPU, MEMORY_MB, DISK_GB])
        if connection.scalar(text(f"SELECT id FROM resource_providers WHERE id = {provider}")):
            run(connection, stocking((provider, class_id), total=30))

    def mark(self, connection: Connection) -> None:
        provider = self.choice.randint(1, ROOTS)
        run(connection, f"UPDATE resource_providers SET generation = generation + 1 WHERE id = {provider}")

    def rename(self, connection: Connection) -> None:
        provider, name = self.choice.randint(1, ROOTS + BELOW), f"name{self.choice.random()}"
        run(connection, f"UPDATE resource_providers SET name = '{name}' WHERE id = {provider}")

    def move(self, connection: Connection) -> None:
        """Move a nested provider below another root, or make it a separate tree."""
        below = self.choice.randint(ROOTS + 1, ROOTS + BELOW)
        root, parent = self.choice.choice([(one, str(one)) for one in range(1, ROOTS)] + [(below, "NULL")])
        values = f"root_provider_id = {root}, parent_provider_id = {parent}"
        run(connection, f"UPDATE resource_providers SET {values} WHERE id = {below}")

    def come_or_go(self, connection: Connection) -> None:
        """Delete the last root with all its data except allocations, or create one with its id."""
        if connection.scalar(text(f"SELECT id FROM resource_providers WHERE id = {ROOTS}")):
            tree = f"SELECT id FROM resource_providers WHERE root_provider_id = {ROOTS}"
            run(connection, f"DELETE FROM inventories WHERE resource_provider_id IN ({tree})")
            run(connection, f"DELETE FROM resource_providers WHERE root_provider_id = {ROOTS} AND id <> {ROOTS}")
            delete_provider(connection, ROOTS)
        else:
            columns = "id, uuid, name, generation, root_provider_id"
            run(connection, f"INSERT INTO resource_providers ({columns}) VALUES ({ROOTS}, 'x', 'x', 0, {ROOTS})")
            run(connection, stocking((ROOTS, VCPU), total=77))

    def lose_journal(self, connection: Connection) -> None:
        run(connection, "DELETE FROM placement_journal")


def test_columns_are_those_of_each_snapshot_whatever_happens(cloud: Database, request: pytest.FixtureRequest) -> None:
    """Others read while an older snapshot is open, and an older transaction commits after newer ones."""
    seed = request.config.getoption("--seed")
    for number in range(12 if request.config.getoption("--deep") else 1):
        cloud.cloud_cache, choice = None, Random(seed + number)
        events = Events(cloud, choice)
        for _ in range(EVENTS):
            if choice.random() < 0.2:
                _beside_older_snapshot(cloud, events)
            elif choice.random() < 0.2 and cloud.dialect == "postgresql":
                _beside_slow_writer(cloud, events)
            else:
                events.one()
            assert_known(cloud)


@reads
def _beside_older_snapshot(tx: Transaction, events: Events) -> None:
    if events.choice.random() < 0.5:
        _compare(tx)
    else:
        tx.tuples(text("SELECT count(*) FROM placement_journal"))
    for _ in range(events.choice.randint(1, 3)):
        events.one()
        assert_known(tx.database)
    _compare(tx)


def _beside_slow_writer(database: Database, events: Events) -> None:
    with database.writer.connect() as slow:
        with by_request():
            transaction = slow.begin()
            pass_write_gate(slow)
            allocate(slow, "slow", {(SLOW, VCPU): 1})
        with transaction:
            events.one()
            assert_known(database)


def test_what_requests_of_this_server_change_is_not_read_again(cloud: Database) -> None:
    history, sent = TreeHistory(), list[str]()

    @reads
    def known(tx: Transaction) -> None:
        version = history.version(tx)
        assert version is not None
        event.listen(cloud.reader, "before_cursor_execute", note)
        history.columns(tx, version)
        event.remove(cloud.reader, "before_cursor_execute", note)

    def note(*call: object) -> None:
        sent.append(str(call[2]))

    known(cloud)
    assert len(sent) == 2
    sent.clear()
    with by_request(), cloud.writer.begin() as connection:
        allocate(connection, "c", {(1, VCPU): 3, (2, MEMORY_MB): 5})
    known(cloud)
    assert not sent
    with cloud.writer.begin() as connection:
        allocate(connection, "anybody", {(1, VCPU): 3})
    known(cloud)
    assert len(sent) == 2

"""A picture of a cloud that is kept current by the journal shows what its snapshot shows: never older, never newer."""

import random
import threading
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.journal.changes import MOST_CHANGED, place_in_journal, roots_changed_since
from placement.store.kept_usage.write_gate import pass_write_gate
from placement.store.search.devices import ProviderAmount, left_by_provider
from tests.databases import open_database
from tests.store.rows import VCPU, add_providers, allocate, delete_provider, run, stocking

PROVIDERS, WRITERS, CHANGES = 8, 4, 40

Left = list[ProviderAmount]


@pytest.fixture(params=["sqlite", "postgresql"])
def cloud(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database with some providers of VCPUs, of each kind whose journal tells what a snapshot has seen."""
    opened = open_database(request.getfixturevalue(f"{request.param}_url"))
    with opened.writer.begin() as connection:
        for provider in add_providers(connection, PROVIDERS):
            run(connection, stocking((provider, VCPU), total=1000))
    yield opened
    opened.dispose()


class Picture:
    """What trees have left, kept current by reading the trees that changed."""

    def __init__(self) -> None:
        self.left: Left = []
        self.place = None
        self.read_anew = 0

    def in_snapshot(self, tx: Transaction) -> tuple[Left, Left]:
        """Bring the picture up to date, and return it beside what the same snapshot says."""
        place = place_in_journal(tx)
        changed = roots_changed_since(tx, self.place) if self.place else None
        if changed is None:
            self.read_anew += 1
            self.left = left_by_provider(tx, [VCPU])
        elif changed:
            self.left = [row for row in self.left if row[0] not in changed] + left_by_provider(tx, [VCPU], changed)
        self.place = place
        return sorted(self.left), sorted(left_by_provider(tx, [VCPU]))


@reads
def looked_at(tx: Transaction, picture: Picture) -> tuple[Left, Left]:
    return picture.in_snapshot(tx)


def assert_current(database: Database, picture: Picture) -> None:
    kept, true = looked_at(database, picture)
    assert kept == true


def opened(database: Database) -> Connection:
    """Return a connection in a transaction that may write."""
    connection = database.writer.connect()
    connection.begin()
    pass_write_gate(connection)
    return connection


def _change(connection: Connection, choice: random.Random, name: str) -> None:
    provider = choice.randint(1, PROVIDERS)
    if choice.random() < 0.4:
        run(connection, f"DELETE FROM allocations WHERE resource_provider_id = {provider} AND id % 3 = 0")
    elif choice.random() < 0.3:
        run(connection, f"UPDATE inventories SET total = total + 1 WHERE resource_provider_id = {provider}")
    allocate(connection, name, {(provider, VCPU): choice.randint(1, 5)})


def _write(database: Database, seed: int, together: threading.Barrier) -> None:
    choice = random.Random(seed)
    together.wait()
    for number in range(CHANGES):
        try:
            with opened(database) as connection:
                _change(connection, choice, f"{seed}-{number}")
                if choice.random() < 0.8:
                    connection.commit()
        except DBAPIError:
            pass  # a deadlock


def test_a_picture_is_what_each_snapshot_shows_beside_racing_writers(cloud: Database) -> None:
    picture, together = Picture(), threading.Barrier(WRITERS + 1)
    writers = [threading.Thread(target=_write, args=(cloud, seed, together)) for seed in range(WRITERS)]
    for writer in writers:
        writer.start()
    together.wait()
    while any(writer.is_alive() for writer in writers):
        assert_current(cloud, picture)
    assert_current(cloud, picture)
    assert picture.read_anew == 1


def test_what_is_committed_late_by_an_older_transaction_is_seen(postgresql: Database) -> None:
    with postgresql.writer.begin() as connection:
        for provider in add_providers(connection, 2):
            run(connection, stocking((provider, VCPU), total=10))
    picture = Picture()
    with opened(postgresql) as slow, opened(postgresql) as fast:
        allocate(slow, "slow", {(1, VCPU): 1})
        allocate(fast, "fast", {(2, VCPU): 1})
        assert_current(postgresql, picture)
        fast.commit()
        assert_current(postgresql, picture)
        slow.commit()
        assert_current(postgresql, picture)
    assert sorted(picture.left) == [(1, 1, VCPU, 9), (2, 2, VCPU, 9)]
    assert picture.read_anew == 1


PRUNED = "DELETE FROM placement_journal"
MOVED = "UPDATE resource_providers SET root_provider_id = 1, parent_provider_id = 1 WHERE id = 2"
EMPTIED = "DELETE FROM inventories WHERE resource_provider_id = 5"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda on: run(on, PRUNED), id="the journal is pruned"),
        pytest.param(lambda on: run(on, MOVED), id="a tree moves"),
        pytest.param(
            lambda connection: (run(connection, EMPTIED), delete_provider(connection, 5)), id="a provider goes"
        ),
    ],
)
def test_what_matters_to_more_trees_than_it_names_makes_the_reader_start_anew(
    cloud: Database, change: Callable[[Connection], object]
) -> None:
    picture = Picture()
    assert_current(cloud, picture)
    with cloud.writer.begin() as connection:
        allocate(connection, "c", {(1, VCPU): 3})
        change(connection)
    assert_current(cloud, picture)
    assert picture.read_anew == 2


def test_where_much_has_changed_all_is_read_again(cloud: Database) -> None:
    picture = Picture()
    assert_current(cloud, picture)
    with cloud.writer.begin() as connection:
        rows = [f"({id_}, 'more-{id_}', 'more-{id_}', 0, {id_})" for id_ in range(100, 100 + MOST_CHANGED)]
        columns = "id, uuid, name, generation, root_provider_id"
        run(connection, f"INSERT INTO resource_providers ({columns}) VALUES {', '.join(rows)}")
    assert_current(cloud, picture)
    with cloud.writer.begin() as connection:
        allocate(connection, "c", {(id_, VCPU): 1 for id_ in range(100, 100 + MOST_CHANGED)})
    assert_current(cloud, picture)
    assert picture.read_anew == 3


def test_a_transaction_that_writes_has_no_place_in_the_journal(cloud: Database) -> None:
    """It would pass its own rows, which others do not see yet."""
    with cloud.writer.begin() as connection:
        assert place_in_journal(Transaction(connection, cloud)) is None

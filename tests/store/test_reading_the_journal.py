"""Questions about one provider, or about the journal's beginning, do not read the whole journal again and again."""

import pytest
from sqlalchemy import select, update

from placement.services.journal import put_in_order
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.journal.changes import new_rows, place_of
from placement.store.journal.history import complete_since
from placement.store.journal.order import J
from placement.store.journal.reading import EntryFilter, trail
from placement.store.journal.watched import BEGAN, JOURNAL
from placement.store.tables import placement_journal
from tests.store.rows import VCPU, add_providers, run, stocking
from tests.store.rows_read import reading

PROVIDERS = 1500
LITTLE = {"postgresql": 150, "mysql": 150, "sqlite": 1500}
"""What is little: a tenth of a row, or one instruction, for each provider. The journal has two rows for each."""


@pytest.fixture
def cloud(migrated: Database) -> Database:
    """Many providers, on a database of each of the three kinds."""
    with migrated.writer.begin() as connection:
        add_providers(connection, PROVIDERS)
        run(connection, stocking((7, VCPU), total=8))
    return migrated


@reads
def cost_of_trail(tx: Transaction) -> int:
    wanted = EntryFilter(providers=("provider-7",))
    assert len(trail(tx, wanted, limit=10)) == 3
    with reading(tx) as read:
        trail(tx, wanted, limit=10)
        return read()


@reads
def cost_of_beginning(tx: Transaction) -> int:
    first = tx.execute(select(J.time).order_by(J.id).limit(1)).scalar_one()
    with reading(tx) as read:
        assert complete_since(tx) == first
        return read()


@reads
def beginning(tx: Transaction) -> object:
    return complete_since(tx)


@reads
def cost_of_nothing_new(tx: Transaction) -> int:
    place = place_of(tx)
    assert place is not None
    with reading(tx) as read:
        found = new_rows(tx, place)
        cost = read()
    assert found is not None
    assert found.rows is not None
    return cost


def test_requests_after_a_large_transaction_do_not_read_its_rows(cloud: Database) -> None:
    """PostgreSQL counted the transactions that the newest one overlapped with, in as many rows as it had written."""
    put_in_order(cloud)
    assert cost_of_nothing_new(cloud) < LITTLE[cloud.dialect]


def test_the_trail_of_one_provider_reads_only_its_rows(cloud: Database) -> None:
    """SQLite read the whole journal for the names that classes and traits may have had."""
    assert cost_of_trail(cloud) < LITTLE[cloud.dialect]


def test_the_beginning_is_searched_for_once(cloud: Database) -> None:
    """The map of the console looks for it with each view."""
    first = cost_of_beginning(cloud)
    assert cost_of_beginning(cloud) < LITTLE[cloud.dialect] < first


def test_a_later_beginning_is_found(cloud: Database) -> None:
    before = beginning(cloud)
    with cloud.writer.begin() as connection:
        run(connection, stocking((8, VCPU), total=8))
        newest = select(J.id).order_by(J.id.desc()).limit(1)
        last = connection.execute(newest).scalar_one()
        connection.execute(update(placement_journal).where(J.id == last).values(kind=JOURNAL, action=BEGAN))
        time = connection.execute(select(J.time).where(J.id == last)).scalar_one()
    assert beginning(cloud) == time != before

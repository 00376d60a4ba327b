"""How transactions begin and end on PostgreSQL and MariaDB, where this server spells out their modes itself."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from placement.errors import Invalid, Unavailable
from placement.services.providers import create_provider
from placement.store.connection.database import Database, Transaction, reads, reads_once, writes
from tests.claims import new_uuid

SETTINGS = ("transaction_isolation", "transaction_read_only")
OFTEN = 8
"""The driver prepares a statement on its sixth execution."""


@reads
def settings_of_a_reader(tx: Transaction) -> list[str]:
    return [tx.connection.execute(text(f"SHOW {name}")).scalar_one() for name in SETTINGS]


@writes
def refused(tx: Transaction) -> None:
    tx.connection.execute(text("SELECT count(*) FROM consumers")).scalar_one()
    raise Invalid("no")


@reads_once
def prepared(tx: Transaction) -> int:
    return int(tx.connection.execute(text("SELECT count(*) FROM pg_prepared_statements")).scalar_one())


def providers_that_appear(tx: Transaction) -> int:
    """Count twice, while another transaction commits a provider in between."""
    count = text("SELECT count(*) FROM resource_providers")
    before: int = tx.execute(count).scalar_one()
    uuid = new_uuid()
    create_provider(tx.database, uuid=uuid, name=uuid)
    return int(tx.execute(count).scalar_one()) - before


def delete_everything(tx: Transaction) -> None:
    tx.execute(text("DELETE FROM resource_providers"))


def test_a_reader_sees_one_moment_and_the_writer_after_it_the_newest(on_server: Database):
    assert reads(providers_that_appear)(on_server) == 0
    assert writes(providers_that_appear)(on_server) == 1
    assert reads(providers_that_appear)(on_server) == 0


def test_a_reader_may_not_write(on_server: Database):
    with pytest.raises((Unavailable, DBAPIError), match=r"(?i)read.only"):
        reads(delete_everything)(on_server)
    writes(delete_everything)(on_server)


def test_a_reader_that_asked_nothing_leaves_the_next_transaction_alone(on_server: Database):
    reads(lambda tx: None)(on_server)
    writes(delete_everything)(on_server)
    writes(lambda tx: None)(on_server)
    assert reads(providers_that_appear)(on_server) == 0


def test_a_refused_change_leaves_prepared_statements_and_no_open_transaction(postgresql: Database):
    for _ in range(OFTEN):
        with pytest.raises(Invalid):
            refused(postgresql)
    assert settings_of_a_reader(postgresql) == ["repeatable read", "on"]
    assert prepared(postgresql) > 0

"""What finds nothing is known while requests of this server only take, and only in snapshots that agree."""

from collections.abc import Iterator

import pytest

from placement.services.cloud_cache import cloud_in
from placement.services.journal import put_in_order
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.journal.changes import look
from tests.databases import open_database
from tests.store.conftest import THREE_KINDS
from tests.store.rows import VCPU, add_providers, allocate, by_request, run, stocking

NEW_HOST = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) VALUES (50, 'p50', 'p50', 0, 50)"
)
NEW_TRAIT = "INSERT INTO resource_provider_traits (trait_id, resource_provider_id) VALUES (1, 3)"
MORE_USED = "UPDATE allocations SET used = used + 1 WHERE resource_provider_id = 2"
LESS_USED = "UPDATE allocations SET used = used - 1 WHERE resource_provider_id = 2"
EXTENDED = "UPDATE inventories SET total = 16 WHERE resource_provider_id = 3"


@pytest.fixture(params=THREE_KINDS)
def full(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Hosts whose VCPUs are all in use, on a database of each of the three kinds."""
    opened = open_database(request.getfixturevalue(f"{request.param}_url"))
    with opened.writer.begin() as connection:
        for provider in add_providers(connection, 4):
            run(connection, stocking((provider, VCPU), total=10))
            allocate(connection, "full", {(provider, VCPU): 10})
    put_in_order(opened)
    yield opened
    opened.dispose()


def change(database: Database, *changes: str) -> None:
    with database.writer.begin() as connection:
        run(connection, *changes)
    put_in_order(database)  # MariaDB's readers go by the numbers of rows.


@reads
def note(tx: Transaction) -> None:
    cloud_in(tx).note_nothing(("any",), "any")
    cloud_in(tx).note_nothing(("lasts",), "lasts", lasts=True)


def known_in(tx: Transaction) -> list[str | None]:
    """Return what is known of a request that any change ends, and of one that lasts while others only take."""
    return [cloud_in(tx).reason_for_nothing((name,)) for name in ("any", "lasts")]


known = reads(known_in)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([MORE_USED], [None, "lasts"]),
        ([LESS_USED], [None, None]),
        ([MORE_USED, EXTENDED], [None, None]),
        ([MORE_USED, NEW_TRAIT], [None, None]),
        ([NEW_HOST], [None, None]),
    ],
    ids=["taken", "given back", "extended", "a trait", "a new host"],
)
def test_what_lasts_is_known_while_requests_only_take(
    full: Database, changes: list[str], expected: list[str | None]
) -> None:
    note(full)
    with by_request():
        change(full, *changes)
        assert known(full) == expected
        change(full, MORE_USED)
    assert known(full) == expected


def test_what_others_write_ends_it(full: Database) -> None:
    """Their rows may name another tree than that of the provider."""
    note(full)
    change(full, MORE_USED)
    assert known(full) == [None, None]


def test_an_older_snapshot_does_not_learn_from_a_newer_one(full: Database) -> None:
    note(full)

    @reads
    def in_both(tx: Transaction) -> list[str | None]:
        look(tx, None)  # The snapshot is that of the first statement.
        with by_request():
            change(full, MORE_USED)
        note(full)
        return known(full) + known_in(tx)

    assert in_both(full) == ["any", "lasts", None, None]

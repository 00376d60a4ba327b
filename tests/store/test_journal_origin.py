"""The journal names the request behind each change by this server, and none behind changes by others."""

from collections.abc import Iterator

import pytest

from placement.domain.identity import CURRENT_ORIGIN, Origin
from placement.store.connection.database import Database
from tests.rows_of_a_cloud import fill
from tests.store.replayed import journal_rows
from tests.store.rows import VCPU, allocate

ORIGIN = Origin("req-1", "o'brien\\'; DROP TABLE users; --\x1f\0", "Zo\u00eb", "PUT /allocations/<consumer_uuid>")


@pytest.fixture
def at_work(migrated: Database) -> Iterator[None]:
    token = CURRENT_ORIGIN.set(ORIGIN)
    yield
    CURRENT_ORIGIN.reset(token)


def told(database: Database) -> list[tuple[str | None, ...]]:
    with database.engine.connect() as connection:
        return [(row.request_id, row.by_user, row.by_project, row.route) for row in journal_rows(connection)]


@pytest.mark.usefixtures("at_work")
def test_every_row_of_a_request_tells_whose_it_is(migrated: Database) -> None:
    before = len(told(migrated))
    fill(migrated)
    rows = told(migrated)[before:]
    assert len(rows) > 10
    assert set(rows) == {("req-1", "o'brien'; DROP TABLE users; --", "Zo\u00eb", "PUT /allocations/<consumer_uuid>")}


def test_what_comes_after_a_request_on_the_same_connection_is_not_told_as_its_own(migrated: Database) -> None:
    token = CURRENT_ORIGIN.set(ORIGIN)
    fill(migrated)
    CURRENT_ORIGIN.reset(token)
    with migrated.writer.begin() as connection:
        allocate(connection, "c1", {(1, VCPU): 5})
    assert told(migrated)[-1] == (None, None, None, None)

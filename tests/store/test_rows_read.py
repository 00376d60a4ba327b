"""Questions about a few trees, or about one provider's past, cost what these have, not what all others have."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select, text, update

from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.services.journal import put_in_order
from placement.store.allocations import allocations_of_provider
from placement.store.connection.database import Database, Transaction, reads
from placement.store.journal.changes import new_rows, place_of
from placement.store.journal.history import complete_since
from placement.store.journal.order import J
from placement.store.journal.reading import EntryFilter, trail
from placement.store.journal.watched import BEGAN, JOURNAL
from placement.store.search.cloud_rows import cloud_rows
from placement.store.search.names import ids_for
from placement.store.tables import placement_journal
from tests.store.rows import VCPU, add_providers, allocate, run, stocking

_COUNTED = {
    "postgresql": "SELECT CAST(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS bigint) FROM pg_stat_xact_user_tables",
    "mysql": "SELECT CAST(sum(variable_value) AS SIGNED) FROM information_schema.session_status "
    "WHERE variable_name LIKE 'handler_read%'",
}


@contextmanager
def reading(tx: Transaction) -> Iterator[Callable[[], int]]:
    """Yield a function that returns how much has been read since."""
    if tx.dialect != "sqlite":
        before = _counted(tx)
        yield lambda: _counted(tx) - before
        return
    done = 0

    def count() -> None:
        nonlocal done
        done += 1

    connection = tx.connection.connection.driver_connection
    assert connection is not None
    connection.set_progress_handler(count, 1)
    yield lambda: done
    connection.set_progress_handler(None, 1)


def _counted(tx: Transaction) -> int:
    return int(tx.execute(text(_COUNTED[tx.dialect])).scalar_one())


PROVIDERS = 3000
LITTLE = {"postgresql": 300, "mysql": 300, "sqlite": 3000}
"""What a few trees may cost: a tenth of a row, or one instruction, for each provider."""

SSE, AVX, NUMA = "HW_CPU_X86_SSE", "HW_CPU_X86_AVX", "HW_NUMA_ROOT"
ELSEWHERE = "elsewhere"
TABLES = (
    *("resource_providers", "inventories", "provider_usages", "allocations", "consumers", "placement_journal"),
    *("resource_provider_traits", "resource_provider_aggregates"),
)
HOLDINGS = (
    f"""
    INSERT INTO resource_provider_traits (resource_provider_id, trait_id)
    SELECT p.id, t.id FROM resource_providers p CROSS JOIN traits t
    WHERE t.name IN ('{SSE}', '{NUMA}') OR p.id > 1 AND t.name = '{AVX}'
    """,
    *[f"INSERT INTO placement_aggregates (uuid) VALUES ('{uuid}')" for uuid in ("one", "other", ELSEWHERE)],
    f"""
    INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id)
    SELECT p.id, a.id FROM resource_providers p CROSS JOIN placement_aggregates a
    WHERE p.id > 1 OR a.uuid <> '{ELSEWHERE}'
    """,
    "INSERT INTO projects (external_id) VALUES ('p')",
    "INSERT INTO users (external_id) VALUES ('u')",
    """
    INSERT INTO consumers (uuid, project_id, user_id, generation)
    SELECT p.uuid, o.id, u.id, 1 FROM resource_providers p CROSS JOIN projects o CROSS JOIN users u
    """,
)


@pytest.fixture
def cloud(database: Database) -> Database:
    """Many providers with stock, traits, aggregates and a consumer each, on a database of each of the three kinds."""
    with database.writer.begin() as connection:
        providers = add_providers(connection, PROVIDERS)
        run(connection, *[stocking((id_, VCPU), total=8) for id_ in providers], *HOLDINGS)
        for id_ in providers[::10]:
            allocate(connection, f"provider-{id_}", {(id_, VCPU): 1})
    put_in_order(database)
    # MariaDB estimates by rows, too, that are deleted and not purged yet: a table made anew has none.
    renew = "OPTIMIZE TABLE" if database.dialect == "mysql" else "ANALYZE"
    with database.writer.begin() as connection:
        for table in TABLES:
            connection.execute(text(f"{renew} {table}")).close()
    return database


@reads
def cost_of(tx: Transaction, question: Callable[[Transaction], Any]) -> int:
    """Return what a question costs that has been asked before."""
    question(tx)
    with reading(tx) as read:
        question(tx)
        return read()


def levels_in_use(tx: Transaction) -> object:
    plan = plan_for(CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1}),)))
    return ids_for(tx, plan, [NUMA, AVX]).levels


def trail_of_one(tx: Transaction) -> None:
    assert len(trail(tx, EntryFilter(providers=("provider-7",)), limit=10)) > 2


def nothing_new(tx: Transaction) -> None:
    place = place_of(tx)
    assert place is not None
    found = new_rows(tx, place)
    assert found is not None
    assert found.rows is not None


@pytest.mark.parametrize(
    "question",
    [
        # On MariaDB each request read all links of traits from the one asked about on: 25 ms for 80,000.
        pytest.param(levels_in_use, id="traits in use"),
        # A condition compared with 1 is met by no index: on 10,000 hosts MariaDB read 50,000 rows for the sums of one.
        pytest.param(lambda tx: cloud_rows(tx, [1]), id="rows of the cloud"),
        pytest.param(lambda tx: allocations_of_provider(tx, "provider-1"), id="allocations"),
        # SQLite read the whole journal for the names that classes and traits may have had.
        pytest.param(trail_of_one, id="trail of a provider"),
        # After a large transaction, PostgreSQL counted those that it overlapped with, in all the rows it had written.
        pytest.param(nothing_new, id="nothing new"),
        # The map of the console looks for it with each view.
        pytest.param(complete_since, id="beginning of the journal"),
    ],
)
def test_little_is_read_for_little(cloud: Database, question: Callable[[Transaction], Any]) -> None:
    assert cost_of(cloud, question) < LITTLE[cloud.dialect]


def test_a_later_beginning_of_the_journal_is_found(database: Database) -> None:
    beginning = reads(complete_since)
    before = beginning(database)
    with database.writer.begin() as connection:
        add_providers(connection, 1)
        run(connection, stocking((1, VCPU), total=8))
        last = connection.execute(select(J.id).order_by(J.id.desc()).limit(1)).scalar_one()
        connection.execute(update(placement_journal).where(J.id == last).values(kind=JOURNAL, action=BEGAN))
        time = connection.execute(select(J.time).where(J.id == last)).scalar_one()
    assert beginning(database) == time != before

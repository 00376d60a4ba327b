"""Candidates, explanations and bulk reads from a real streaming standby, while it follows, lags, and fails."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, select, text

from placement.app import create_app
from placement.cloud.columns import CloudColumns
from placement.services.tree_history import TreeHistory
from placement.settings import DatabaseSettings, Settings
from placement.store.connection.database import Database, Transaction, reads, reads_anywhere
from placement.store.lifecycle.standby import Standby
from placement.store.locks import pass_write_gate
from placement.store.search.cloud_rows import cloud_rows
from placement.store.tables import resource_providers
from tests.api.conftest import Api
from tests.failover.replicas import Pair, running_pair
from tests.servers import until
from tests.store.rows import VCPU, allocate
from tests.store.snapshots import assert_same_cloud

QUERIES = ("/allocation_candidates?resources=VCPU:1", "/planner/v1/explain?resources=VCPU:1", "/planner/v1/inventory")
CONFLICTS = "SELECT confl_snapshot FROM pg_stat_database_conflicts WHERE datname = 'placement'"
A_LONG_QUERY = "SELECT pg_sleep(60)"
AT_WORK = f"SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = '{A_LONG_QUERY}'"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with running_pair() as running:
        yield running


@pytest.fixture
def api(pair: Pair) -> Iterator[Api]:
    """A server on the primary that may read from the standby."""
    settings = DatabaseSettings(
        connection=pair.url(pair.primary), slave_connection=pair.url(pair.standby), sync_on_startup=True
    )
    application = create_app(Settings(database=settings, auth_strategy="noauth2"))
    yield Api(application)
    application.extensions["placement"].database.dispose()


def database_of(api: Api) -> Database:
    found: Database = api.app.extensions["placement"].database
    return found


def standby_of(api: Api) -> Standby:
    standby = database_of(api).standby
    assert standby is not None
    return standby


def add_host(api: Api, number: int) -> None:
    uuid = f"00000000-0000-4000-8000-{number:012}"
    assert api.post("/resource_providers", {"name": f"host{number}", "uuid": uuid}).status_code == 200
    inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    assert api.put(f"/resource_providers/{uuid}/inventories", inventories).status_code == 200


def hosts_found(api: Api) -> int:
    answer = api.get(QUERIES[0])
    assert answer.status_code == 200, answer.text
    return len(answer.get_json()["allocation_requests"])


def test_the_standby_is_read_from_while_it_follows(api: Api, pair: Pair) -> None:
    standby = standby_of(api)
    add_host(api, 1)
    standby.examine()
    assert standby.may_serve()
    assert hosts_found(api) == 1
    assert all(api.get(query).status_code == 200 for query in QUERIES)

    pair.standby.execute("SELECT pg_wal_replay_pause()")
    until(lambda: pair.standby.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])
    add_host(api, 2)
    assert hosts_found(api) == 1, "the standby has not heard of it yet"
    standby.examine()
    assert not standby.may_serve()
    assert hosts_found(api) == 2, "the standby is too far behind, so the primary answers"

    pair.standby.execute("SELECT pg_wal_replay_resume()")
    standby.examine()
    assert standby.may_serve()
    assert hosts_found(api) == 2

    # Its processes disappear in the middle of their work: no request notices.
    pair.standby.kill()
    assert [api.get(query).status_code for query in QUERIES] == [200, 200, 200]
    assert not standby.may_serve()
    standby.examine()
    assert hosts_found(api) == 2

    pair.standby.start()
    standby.examine()
    assert standby.may_serve()
    assert hosts_found(api) == 2


def test_sums_are_those_of_the_standby_where_older_transactions_end_later(api: Api, pair: Pair) -> None:
    """A transaction that overlapped an older one is seen, although the newest row of the journal has not changed."""
    history = TreeHistory()
    for number in range(3):
        add_host(api, number)
    primary, standby = database_of(api), standby_of(api).database
    with opened(primary) as oldest, opened(primary) as older, opened(primary) as newest:
        for provider, connection in enumerate((oldest, older, newest), 1):
            allocate(connection, f"c{provider}", {(provider, VCPU): 1})
        for connection in (newest, older, oldest):
            connection.commit()
            replayed(pair)
            assert_known(standby, history)


def opened(database: Database) -> Connection:
    """Return a connection in a transaction that may write."""
    connection = database.writer.connect()
    connection.begin()
    pass_write_gate(connection)
    return connection


def replayed(pair: Pair) -> None:
    """Wait until the standby has everything the primary has."""
    ((written,),) = pair.primary.execute("SELECT pg_current_wal_insert_lsn()")
    until(lambda: pair.standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{written}'") == [(True,)])


@reads
def assert_known(tx: Transaction, history: TreeHistory) -> None:
    version = history.version(tx)
    assert version is not None
    assert_same_cloud(history.columns(tx, version), CloudColumns.from_rows(cloud_rows(tx)))


@pytest.mark.parametrize("is_asking", [True, False], ids=["at work", "between two statements"])
def test_a_read_that_is_in_the_way_of_the_primary_is_made_there(api: Api, pair: Pair, is_asking) -> None:
    """Rows that the primary has vacuumed must go on the standby too, which cancels readers that may still see them.

    A statement fails with 40001, and the standby stays in use; between two statements the connection is cut.
    """
    standby, tries = standby_of(api), []
    for statement in ("ALTER SYSTEM SET max_standby_streaming_delay = 0", "SELECT pg_reload_conf()"):
        pair.standby.execute(statement)
    for number in range(3):
        add_host(api, number)
    standby.examine()
    with ThreadPoolExecutor() as beside:

        @reads_anywhere
        def hosts(tx: Transaction) -> int:
            tries.append(tx.database)
            found = len(tx.execute(select(resource_providers.c.id)).all())
            if tries == [standby.database]:
                removed = beside.submit(remove_old_rows, pair, waits=is_asking)
                if is_asking:
                    tx.execute(text(A_LONG_QUERY))
                removed.result()
                until(lambda: pair.standby.execute(CONFLICTS) != [(0,)])
                tx.execute(text("SELECT 1"))
            return found

        assert hosts(database_of(api)) == 3
    assert tries == [standby.database, database_of(api)]
    assert standby.may_serve() == is_asking


def remove_old_rows(pair: Pair, *, waits: bool) -> None:
    """Update all providers and vacuum the old rows, while the standby is running a query if asked to wait for it."""
    if waits:
        until(lambda: pair.standby.execute(AT_WORK, database="postgres") == [(1,)])
    pair.primary.execute("UPDATE resource_providers SET generation = generation + 1")
    pair.primary.execute("VACUUM resource_providers")


def test_without_a_primary_the_standby_goes_on_answering(api: Api, pair: Pair) -> None:
    standby = standby_of(api)
    add_host(api, 1)
    standby.examine()
    pair.primary.kill()
    assert hosts_found(api) == 1
    standby.examine()
    assert hosts_found(api) == 1
    assert api.get("/resource_providers").status_code == 503

"""A database that is connected and silent, as behind a firewall that forwards no longer, or cuts its connections."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from placement.settings import DatabaseSettings
from placement.store.connection.database import Database, OutcomeUnknown, Transaction, reads, reads_once, writes
from placement.store.connection.faults import DatabaseFailed
from placement.store.lifecycle.opening import open_database
from placement.store.tables import projects
from tests.databases import open_database as opened_by_its_url
from tests.stalling_proxy import StallingProxy, proxied

LIMITS = {"statement_timeout": 1, "connect_timeout": 2}


def one(tx: Transaction) -> int:
    return int(tx.execute(text("SELECT 1")).scalar_one())


def write_project(tx: Transaction, attempts: list[str]) -> None:
    attempts.append("an attempt")
    tx.execute(projects.insert().values(external_id="p1"))


UNITS = {"reads": reads(one), "reads_once": reads_once(one), "writes": writes(one)}


@pytest.fixture
def proxy_and_database(server_url: str) -> Iterator[tuple[StallingProxy, Database]]:
    with proxied(server_url) as (proxy, behind):
        database = open_database(DatabaseSettings(connection=behind, **LIMITS))
        yield proxy, database
        database.dispose()


@pytest.mark.parametrize("unit", UNITS)
def test_a_stalled_connection_is_replaced(proxy_and_database: tuple[StallingProxy, Database], unit: str) -> None:
    proxy, database = proxy_and_database
    assert UNITS[unit](database) == 1
    proxy.stall(old_connections_only=True)
    assert UNITS[unit](database) == 1
    assert dict(database.retries) == {"connection": 1}


def test_a_silent_database_fails_a_request_and_serves_the_next_one(
    proxy_and_database: tuple[StallingProxy, Database],
) -> None:
    proxy, database = proxy_and_database
    assert UNITS["reads"](database) == 1
    proxy.stall()
    with pytest.raises(DatabaseFailed) as caught:
        UNITS["reads"](database)
    assert (caught.value.fault.cause, caught.value.retry_after_s) == ("unreachable", 1)
    proxy.resume()
    assert UNITS["reads"](database) == 1


def test_a_stall_at_commit_leaves_the_outcome_open_and_is_not_retried(
    server_url: str, proxy_and_database: tuple[StallingProxy, Database]
) -> None:
    proxy, database = proxy_and_database
    attempts: list[str] = []
    proxy.stall_at(rb"\bCOMMIT\b")
    with pytest.raises(OutcomeUnknown):
        writes(write_project)(database, attempts)
    assert len(attempts) == 1
    proxy.resume()
    direct = opened_by_its_url(server_url)
    rows = reads(lambda tx: tx.execute(projects.select()).all())(direct)
    direct.dispose()
    assert len(rows) <= 1


def test_a_firewall_that_drops_whoever_connects_is_not_waited_for(server_url: str) -> None:
    """A listener with a full queue drops the first packet of a connection, as a firewall does."""
    with proxied(server_url) as (_, behind), contextlib.ExitStack() as held:
        database = open_database(DatabaseSettings(connection=behind, **LIMITS))
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        dropped = database.engine.url.set(port=listener.getsockname()[1])
        with pytest.raises(DatabaseFailed) as caught:
            reads(one)(opened_by_its_url(dropped.render_as_string(hide_password=False)))
        assert caught.value.fault.cause == "unreachable"
        database.dispose()


CUT = {
    "postgresql": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT concat('KILL ', id) FROM information_schema.processlist "
    "WHERE db = database() AND id <> connection_id()",
}


@pytest.mark.parametrize("unit", UNITS)
def test_a_connection_that_was_cut_while_it_was_idle_is_replaced(
    server_url: str, on_server: Database, unit: str
) -> None:
    """As by a database server that restarts."""
    assert UNITS[unit](on_server) == 1
    other = opened_by_its_url(server_url)
    with other.engine.begin() as connection:
        for kill in connection.execute(text(CUT[other.dialect])).scalars().all():
            if other.dialect == "mysql":
                connection.execute(text(kill))
    other.dispose()
    assert UNITS[unit](on_server) == 1

"""One server on each node of a Galera cluster, writers on all three.

Row locks do not extend to other nodes: of two conflicting transactions, one fails certification, usually at COMMIT.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect

from placement.errors import Unavailable
from placement.store.connection.engines import engine_for
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import TURN, Patience, exclusively
from placement.store.lifecycle.opening import normalised
from tests import servers
from tests.claims import new_uuid
from tests.failover.galera import Node, Programs, running_cluster
from tests.servers import check_database, configured
from tests.survival.load import Crowd, check, prepared, send, wait_for
from tests.survival.mirrors import Mirrors
from tests.upgrades import upgraded_at_once

LOST = ("wsrep_local_cert_failures", "wsrep_local_bf_aborts")
"""A node's counters of transactions that lost to others."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Node]]:
    if missing := Programs().missing():
        pytest.skip(f"{missing} (Debian: mariadb-server, galera-4, rsync)")
    with running_cluster(Programs()) as started:
        yield started


@pytest.fixture
def name(nodes: list[Node]) -> Iterator[str]:
    made = f"placement_{new_uuid().replace('-', '')[:8]}"
    nodes[0].query(f"CREATE DATABASE {made} CHARACTER SET utf8mb4")
    yield made
    nodes[0].query(f"DROP DATABASE {made}")


@pytest.fixture
def engines(nodes: list[Node], name: str) -> Iterator[list[Engine]]:
    """An empty database, as seen from each node."""
    opened = [engine_for(normalised(node.url(name))) for node in nodes]
    yield opened
    for engine in opened:
        engine.dispose()


def test_writers_on_all_nodes_lose_nothing(nodes: list[Node], name: str, tmp_path: Path, is_long: bool) -> None:
    directories = [configured(tmp_path / str(number), node.url(name)) for number, node in enumerate(nodes)]
    with servers.running_servers(directories) as served:
        urls = [server.url for server in served]
        record = prepared(urls[0])
        with Mirrors(urls) as mirrors, Crowd(record, urls, seed=1):
            wait_for(record, 2000 if is_long else 60, timeout_s=900)
        lost = [int(node.query(f"SHOW STATUS LIKE '{counter}'")[0][1]) for node in nodes for counter in LOST]
        print("\n", dict(record.statuses), "acknowledged", len(record.acknowledged), "transactions lost", sum(lost))
        assert record.statuses["broken"] == 0
        check(record, urls[2])
        mirrors.check()
        check_read_after_write(urls)
    check_database(directories[1])


def test_nodes_that_are_cut_off_answer_503_and_nothing_is_lost(
    nodes: list[Node], name: str, tmp_path: Path, is_long: bool
) -> None:
    """A node without the others is "not yet prepared" (1047); what it acknowledged before is there when it returns."""
    directories = [configured(tmp_path / str(number), node.url(name)) for number, node in enumerate(nodes)]
    with servers.running_servers(directories) as served:
        urls = [server.url for server in served]
        record = prepared(urls[0])
        with Mirrors(urls) as mirrors, Crowd(record, urls, seed=2):
            for turn in range(30 if is_long else 2):
                wait_for(record, 5, timeout_s=600)
                cut_off = turn % len(nodes)
                nodes[cut_off].leave()
                for method, path in (("GET", "/resource_providers"), ("POST", "/resource_providers")):
                    answer = send(urls[cut_off], method, path, {"name": new_uuid()} if method == "POST" else None)
                    assert (answer.status, "retry-after" in answer.headers) == (503, True), answer
                wait_for(record, 5, timeout_s=600)
                nodes[cut_off].come_back()
        print("\n", dict(record.statuses), "acknowledged", len(record.acknowledged))
        check(record, urls[1])
        mirrors.check()
    logs = "".join((directory / "server.log").read_text() for directory in directories)
    assert "cluster not ready" in logs
    assert "Traceback" not in logs
    check_database(directories[2])


def check_read_after_write(urls: list[str]) -> None:
    """A write acknowledged by one server is visible on another at once; without waiting, some would be missing."""
    for number in range(100):
        uuid = new_uuid()
        assert send(urls[number % 3], "POST", "/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
        assert send(urls[(number + 1) % 3], "GET", f"/resource_providers/{uuid}").status == 200


def test_upgrades_at_all_nodes_at_once_are_done_once(engines: list[Engine]) -> None:
    steps = upgraded_at_once([*engines, *engines])
    assert len(steps) == len(set(steps)) > 0
    assert all(schema.current(engine).keeps_usage for engine in engines)
    assert not inspect(engines[0]).has_table(TURN.name)


def be_killed_at_work(engine: Engine) -> None:
    with exclusively(engine) as killed, engine.begin() as other:
        session = killed.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one()
        other.exec_driver_sql(f"KILL {session}")
        killed.exec_driver_sql("SELECT 1")


def test_a_turn_is_taken_over_from_a_killed_session_at_its_own_node_alone(engines: list[Engine]) -> None:
    first, second, _third = engines
    with pytest.raises(Unavailable):
        be_killed_at_work(first)
    with pytest.raises(Unavailable, match="through the node"):
        schema.upgrade(second, patience=Patience(turn_s=1))
    schema.upgrade(first)
    assert schema.upgrade(second) == ()
    assert not inspect(second).has_table(TURN.name)

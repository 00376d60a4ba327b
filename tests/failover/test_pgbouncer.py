"""A server behind pgbouncer in transaction mode, where the next transaction may run in another session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.failover.bouncer import PROGRAM, running_bouncer
from tests.failover.replicas import running_directory, single_node
from tests.survival.deployment import check_database, configured
from tests.survival.load import Crowd, prepared, send, wait_for
from tests.survival.verdict import check


@pytest.fixture
def url() -> Iterator[str]:
    if not PROGRAM.exists():
        pytest.skip(f"there is no {PROGRAM} (Debian: pgbouncer)")
    with running_directory() as directory, single_node(directory) as node, running_bouncer(node, directory) as url:
        yield url


def test_nothing_depends_on_the_session_that_a_transaction_runs_in(url: str, tmp_path: Path, is_long: bool) -> None:
    """Prepared statements have the same names in every session, so one could even run another client's statement."""
    directory = configured(tmp_path, url)
    served = [servers.started_server(servers.this_project(), directory, threads=6) for _ in range(2)]
    try:
        urls = [one.url for one in served]
        record = prepared(urls[0])
        with Crowd(record, urls, seed=1, per_group=3):
            wait_for(record, 1000 if is_long else 60, timeout_s=600)
            for number in range(20):
                query = f"resources=VCPU:{1 + number % 3}&limit=5"
                assert send(urls[number % 2], "GET", f"/allocation_candidates?{query}").status == 200
        assert record.statuses["broken"] == 0
        assert not any("503" in answer for answer in record.statuses), record.statuses
        check(record, urls[0])
    finally:
        for one in served:
            one.kill()
    check_database(directory)

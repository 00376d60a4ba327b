"""A server behind pgbouncer in transaction mode, where the next transaction may run in another session."""

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.failover.replicas import NAME, Node, account, running_directory, single_node
from tests.servers import check_database, configured
from tests.survival.load import Crowd, check, prepared, send, wait_for

PROGRAM = Path("/usr/sbin/pgbouncer")
SERVER_CONNECTIONS = 3
"""Fewer than the clients have, so that each transaction may get another one."""

CONFIGURATION = """\
[databases]
{name} = host=127.0.0.1 port={server} dbname={name} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
"""


@contextlib.contextmanager
def running_bouncer(node: Node, directory: Path) -> Iterator[str]:
    """Run it in a separate directory and yield the URL for clients."""
    port = servers.free_port()
    configuration = directory / "pgbouncer.ini"
    text = CONFIGURATION.format(name=NAME, server=node.port, port=port, connections=SERVER_CONNECTIONS)
    configuration.write_text(text, encoding="utf-8")
    if user := account():
        shutil.chown(configuration, user=user)
    with (directory / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, configuration], user=user, cwd="/", stdout=log, stderr=log)
    try:
        servers.until(lambda: _listens(port))
        yield f"postgresql://postgres@127.0.0.1:{port}/{NAME}"
    finally:
        process.terminate()
        process.wait(15)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def url() -> Iterator[str]:
    if not PROGRAM.exists():
        pytest.skip(f"there is no {PROGRAM} (Debian: pgbouncer)")
    with running_directory() as directory, single_node(directory) as node, running_bouncer(node, directory) as url:
        yield url


def test_nothing_depends_on_the_session_that_a_transaction_runs_in(url: str, tmp_path: Path, is_long: bool) -> None:
    """Prepared statements have the same names in every session, so one could even run another client's statement."""
    directory = configured(tmp_path, url)
    with servers.running_servers([directory] * 2, threads=6) as served:
        urls = [server.url for server in served]
        record = prepared(urls[0])
        with Crowd(record, urls, seed=1, per_group=3):
            wait_for(record, 1000 if is_long else 60, timeout_s=600)
            for number in range(20):
                query = f"resources=VCPU:{1 + number % 3}&limit=5"
                assert send(urls[number % 2], "GET", f"/allocation_candidates?{query}").status == 200
        assert record.statuses["broken"] == 0
        assert not any("503" in answer for answer in record.statuses), record.statuses
        check(record, urls[0])
    check_database(directory)

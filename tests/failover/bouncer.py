"""pgbouncer in transaction mode in front of a PostgreSQL server, if Debian's package is installed."""

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.failover.replicas import NAME, Node, account, wait_until
from tests.servers import free_port

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
    port = free_port()
    configuration = directory / "pgbouncer.ini"
    text = CONFIGURATION.format(name=NAME, server=node.port, port=port, connections=SERVER_CONNECTIONS)
    configuration.write_text(text, encoding="utf-8")
    if user := account():
        shutil.chown(configuration, user=user)
    with (directory / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, configuration], user=user, cwd="/", stdout=log, stderr=log)
    try:
        wait_until(lambda: _listens(port))
        yield f"postgresql://postgres@127.0.0.1:{port}/{NAME}"
    finally:
        process.terminate()
        process.wait(15)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0

"""A PostgreSQL whose name gets another address: the server notices and goes on."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.failover.replicas import Node, running_directory, single_node
from tests.servers import configured, served_as_shipped
from tests.stalling_proxy import StallingProxy
from tests.survival.load import send

THREADS = 4
LIMITS = {"statement_timeout": "4", "connect_timeout": "2"}
WITH_OWN_HOSTS = ["sh", "-c", 'mount --bind hosts /etc/hosts && exec "$@"', "sh"]


@pytest.fixture
def node() -> Iterator[Node]:
    with running_directory() as directory, single_node(directory) as running:
        yield running


def test_a_name_that_gets_another_address_is_looked_up_once_the_old_one_is_silent(node: Node, tmp_path: Path) -> None:
    """The server sees a file of its own as /etc/hosts."""
    private = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if subprocess.run([*private, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no private mounts")
    old = StallingProxy(("127.0.0.1", node.port))
    new = StallingProxy(("127.0.0.1", node.port), listen="127.0.0.2", port=old.port)
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 database.test\n")
    directory = configured(tmp_path, f"postgresql://postgres@127.0.0.1:{old.port}/placement", **LIMITS)
    configuration = directory / "placement.conf"
    configuration.write_text(configuration.read_text().replace("@127.0.0.1:", "@database.test:"))
    try:
        with served_as_shipped(directory, threads=THREADS, before=[*private, *WITH_OWN_HOSTS]) as server:
            assert send(server.url, "GET", "/resource_providers").status == 200
            old.stall()
            hosts.write_text("127.0.0.2 database.test\n")
            servers.until(lambda: send(server.url, "GET", "/resource_providers").status == 200)
    finally:
        old.close()
        new.close()

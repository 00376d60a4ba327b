"""uWSGI with our sample, and with the options that deployment tools write into its file."""

import re
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.deploy.programs import Uwsgi, uwsgi
from tests.deploy.streams import end, follow
from tests.deploy.walk import log_is_quiet, walk_through

FILES = Path(__file__).parent / "uwsgi"
"""What deployment tools write, with the address, the directory and the scripts of this machine left out.

Debian's own package of openstack-placement loads the script, not the module.
"""

BIN = str(Path(sys.executable).parent)


@pytest.mark.parametrize("deployer", ["kolla-ansible", "openstack-ansible", "openstack-helm", "devstack", "debian"])
def test_the_file_of_a_deployer_serves(configured: Path, deployer: str):
    _serves_by(configured, (FILES / f"{deployer}.ini").read_text())


@pytest.mark.parametrize("deployer", ["kolla-ansible", "openstack-helm"])
def test_workers_that_are_forked_with_the_application_serve(configured: Path, deployer: str):
    """Python's fork hooks do not run then."""
    text = (FILES / f"{deployer}.ini").read_text().replace("lazy-apps = true", "lazy-apps = false")
    _serves_by(configured, re.sub(r"processes = \d+", "processes = 3", text))


def _serves_by(configured: Path, text: str) -> None:
    server, port = uwsgi(), servers.free_port()
    for place, here in (("{address}", f"127.0.0.1:{port}"), ("{directory}", str(configured)), ("{bin}", BIN)):
        text = text.replace(place, here)
    _serves(server, configured, port, server.file(text))


def test_the_sample_serves(configured: Path):
    server, port = uwsgi(), servers.free_port()
    _serves(server, configured, port, server.sample({"http-socket": f"127.0.0.1:{port}"}))


def _serves(server: Uwsgi, configured: Path, port: int, text: str) -> None:
    (configured / "uwsgi.ini").write_text(text)
    with servers.running([server.path, "--ini", "uwsgi.ini"], configured, port) as served:
        walk_through(served.url)
        streams = follow(served.url)
        served.process.terminate()
        assert served.process.wait(2 * servers.STOP_TIMEOUT_S) == 0
        end(streams)
    log_is_quiet(configured / "server.log")

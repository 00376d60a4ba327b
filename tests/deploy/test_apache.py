"""Apache: with mod_wsgi and the script ``placement-api``, and before uWSGI on a unix socket as in devstack."""

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import placement.wsgi
from tests import servers
from tests.deploy.conftest import SERVICE_USER
from tests.deploy.programs import MODULES, mod_wsgi, program, uwsgi
from tests.deploy.samples import sample
from tests.deploy.walk import log_is_quiet, walk_through
from tests.servers import Served

SCRIPT = Path(sys.executable).with_name("placement-api")
MODULE = Path(placement.wsgi.__file__).with_name("api.py")
BASE = """
ServerRoot {directory}
ServerName 127.0.0.1
PidFile {directory}/apache.pid
ErrorLog {directory}/server.log
ErrorLogFormat "%M"
Mutex file:{directory}
DefaultRuntimeDir {directory}
"""


@pytest.fixture
def apache() -> str:
    """The program."""
    return program("apache2", "apache2")


@pytest.mark.parametrize("script", [pytest.param(SCRIPT, id="placement-api"), pytest.param(MODULE, id="copied-module")])
def test_the_sample_serves_by_mod_wsgi(apache: str, open_directory: Path, script: Path):
    """The charm and the Kubernetes operator refer to the script; the Puppet module copies the module to a script."""
    _skip_where_the_service_user_finds_nothing()
    port = servers.free_port()
    (open_directory / "bin").mkdir()
    shutil.copy(script, open_directory / "bin" / "placement-api")
    text = sample(
        "apache/placement-api.conf",
        ("*:8778", f"127.0.0.1:{port}"),
        ("Listen 8778", f"Listen 127.0.0.1:{port}"),
        ("user=placement group=placement", _as_service_user("user={0} group={0}")),
        # mod_wsgi's Python is Debian's, so it uses only the packages of this environment.
        ("python-home=/opt/placement", f"python-path={sysconfig.get_path('purelib')}"),
        ("/opt/placement/bin", str(open_directory / "bin")),
        ("${APACHE_LOG_DIR}/placement-api.log", str(open_directory / "server.log")),
    )
    with _running(apache, open_directory, port, text, modules=[mod_wsgi(), MODULES / "mod_reqtimeout.so"]) as served:
        walk_through(served.url)
    log_is_quiet(open_directory / "server.log")


def test_it_serves_below_a_prefix_before_uwsgi(apache: str, open_directory: Path):
    server, port, socket = uwsgi(), servers.free_port(), open_directory / "uwsgi.socket"
    (open_directory / "uwsgi.ini").write_text(server.sample({"socket": str(socket), "chmod-socket": "666"}))
    text = sample("apache/placement-uwsgi.conf", ("/run/uwsgi/placement-api.socket", str(socket)))
    modules = [MODULES / "mod_proxy.so", MODULES / "mod_proxy_uwsgi.so", MODULES / "mod_reqtimeout.so"]
    behind = servers.launched([server.path, "--ini", "uwsgi.ini"], open_directory)
    try:
        text = f"Listen 127.0.0.1:{port}\n{text}"
        with _running(apache, open_directory, port, text, modules=modules, path="/placement") as served:
            walk_through(f"{served.url}/placement")
    finally:
        behind.terminate()
        behind.wait(servers.STOP_TIMEOUT_S)
    log_is_quiet(open_directory / "server.log")


def _skip_where_the_service_user_finds_nothing() -> None:
    """Skip in a checkout that only root can read, such as a directory made by ``mktemp -d``.

    Python skips directories that it may not read, and then reports "No module named 'placement'".
    """
    for path in (sysconfig.get_path("purelib"), MODULE.parent):
        if os.geteuid() == 0 and subprocess.run(["test", "-r", path], user=SERVICE_USER, check=False).returncode:
            pytest.skip(f"{SERVICE_USER}, whom Apache becomes, may not read {path}")


def _as_service_user(text: str) -> str:
    """Return a text that names the service user if root runs the tests; other users cannot switch users."""
    return text.format(SERVICE_USER) if os.geteuid() == 0 else ""


@contextlib.contextmanager
def _running(
    apache: str, directory: Path, port: int, text: str, *, modules: Sequence[Path], path: str = "/"
) -> Iterator[Served]:
    shared = [MODULES / f"mod_{name}.so" for name in ("mpm_event", "authz_core")]
    loads = [f"LoadModule {path.stem.removeprefix('mod_')}_module {path}" for path in (*shared, *modules)]
    base = BASE.replace("{directory}", str(directory)) + _as_service_user("User {0}\nGroup {0}\n")
    (directory / "apache.conf").write_text("\n".join([*loads, base, text]))
    command = [apache, "-D", "FOREGROUND", "-f", str(directory / "apache.conf")]
    with servers.running(command, directory, port, path=path) as served:
        yield served

"""uWSGI with our sample, and with the options that deployment tools write into its file."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import servers
from tests.deploy.programs import Uwsgi, uwsgi
from tests.deploy.streams import end, follow
from tests.deploy.walk import log_is_quiet, walk_through

COMMON = {
    "master": "true",
    "die-on-term": "true",
    "enable-threads": "true",
    "lazy-apps": "true",
    "thunder-lock": "true",
    "buffer-size": "65535",
    "add-header": "Connection: close",
    "processes": "3",
}
"""The options that all of them write."""

GRACEFULLY = {"exit-on-reload": "false", "hook-master-start": "unix_signal:15 gracefully_kill_them_all"}

KOLLA_ANSIBLE = (
    COMMON
    | GRACEFULLY
    | {
        "http": "{address}",
        "http-auto-chunked": "true",
        "http-chunked-input": "true",
        "http-raw-body": "true",
        "logto2": "{directory}/server.log",
        "module": "placement.wsgi.api:application",
        "socket-timeout": "30",
        "worker-reload-mercy": "80",
        "static-map": "/static=/var/lib/kolla/venv/lib/python3/site-packages/static",
    }
)
OPENSTACK_ANSIBLE = COMMON | {
    "wsgi": "placement.wsgi.api:application",
    "http-socket": "{address}",
    "threads": "1",
    "exit-on-reload": "true",
    "disable-logging": "true",
    "http-auto-chunked": "true",
    "http-raw-body": "true",
    "socket-timeout": "10",
    "need-app": "true",
    "safe-pidfile": "{directory}/placement-api.pid",
    "log-x-forwarded-for": "true",
    "route-user-agent": "^osa-haproxy-healthcheck$ donotlog:",
    "ignore-sigpipe": "true",
    "ignore-write-errors": "true",
    "disable-write-exception": "true",
}
OPENSTACK_HELM = (
    COMMON
    | GRACEFULLY
    | {
        "http-socket": "{address}",
        "processes": "1",
        "module": "placement.wsgi.api:application",
        "log-x-forwarded-for": "true",
        "procname-prefix-spaced": "placement-api:",
        "route-user-agent": "^kube-probe.* donotlog:",
        "worker-reload-mercy": "80",
        "stats": "127.0.0.1:0",
        "stats-http": "true",
    }
)
DEVSTACK = (
    COMMON
    | GRACEFULLY
    | {
        "http": "{address}",
        "module": "placement.wsgi.api:application",
        "worker-reload-mercy": "60",
        "start-time": "%t",
    }
)
DEBIAN = COMMON | {
    "http-socket": "{address}",
    "wsgi-file": str(Path(sys.executable).with_name("placement-api")),
    "rem-header": "Content-Length",
    "no-orphans": "true",
    "threads": "32",
    "listen": "100",
    "socket-timeout": "10",
    "exit-on-reload": "true",
    "http-auto-chunked": "true",
    "http-chunked-input": "true",
    "http-raw-body": "true",
    "wsgi-manage-chunked-input": "true",
}
"""What Debian's own package of the reference writes; it loads the script, not the module."""
LOADED_ONCE = {"lazy-apps": "false", "processes": "3"}
"""Workers are forked from a process that has loaded the application, without Python's fork hooks running."""


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(KOLLA_ANSIBLE, id="kolla-ansible"),
        pytest.param(OPENSTACK_ANSIBLE, id="openstack-ansible"),
        pytest.param(OPENSTACK_HELM, id="openstack-helm"),
        pytest.param(DEVSTACK, id="devstack"),
        pytest.param(DEBIAN, id="debian"),
        pytest.param(KOLLA_ANSIBLE | LOADED_ONCE, id="kolla-ansible-loaded-once"),
        pytest.param(OPENSTACK_HELM | LOADED_ONCE, id="openstack-helm-loaded-once"),
    ],
)
def test_the_file_of_a_deployer_serves(configured: Path, options: Mapping[str, str]):
    server, port = uwsgi(), servers.free_port()
    text = server.file(options).replace("{address}", f"127.0.0.1:{port}")
    _serves(server, configured, port, text.replace("{directory}", str(configured)))


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

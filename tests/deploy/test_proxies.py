"""nginx and HAProxy with our samples: the server is below ``/placement``, and so are its links."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import servers
from tests.deploy.programs import program
from tests.deploy.samples import sample
from tests.deploy.streams import follow
from tests.deploy.walk import log_is_quiet, walk_through
from tests.http_calls import HttpCalls

CLIENTS = 20
NGINX = """
daemon off;
pid {directory}/nginx.pid;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/placement.nginx;
}}
"""


def hold_up_nobody(url: str) -> None:
    """Check that half-sent requests, more than the server has threads, do not reach it."""
    place = urlsplit(url)
    head = f"PUT {place.path}/traits/CUSTOM_A HTTP/1.1\r\nHost: placement\r\n".encode()
    with contextlib.ExitStack() as open_:
        for beginning in [head, head + b"Content-Length: 9\r\n\r\n"] * CLIENTS:
            client = open_.enter_context(socket.create_connection((place.hostname or "", place.port or 80)))
            client.sendall(beginning)
            client.setblocking(False)
            open_.callback(raises_blocking, client)
        assert HttpCalls(url).ask("GET", "/resource_providers").status == 200


def raises_blocking(client: socket.socket) -> None:
    """Check that a connection is still open and unanswered."""
    with pytest.raises(BlockingIOError):
        client.recv(1)


@pytest.fixture
def backend(configured: Path) -> Iterator[int]:
    """The port of a server that trusts proxies."""
    port = servers.free_port()
    with servers.running_server(servers.this_project(), configured, port=port):
        yield port


def behind_nginx(directory: Path, backend: str, port: int) -> list[str]:
    """Write our sample, and return the command that starts nginx with it."""
    text = sample("nginx/placement.conf", ("127.0.0.1:8778", backend), ("listen 80", f"listen 127.0.0.1:{port}"))
    (directory / "placement.nginx").write_text(text)
    (directory / "nginx.conf").write_text(NGINX.format(directory=directory))
    return [program("nginx", "nginx-light"), "-e", "stderr", "-c", str(directory / "nginx.conf")]


def behind_haproxy(directory: Path, backend: str, port: int) -> list[str]:
    """The same of HAProxy: it answers 503 until a probe, ``GET /``, has succeeded; probes are not logged."""
    text = sample("haproxy/placement.cfg", ("127.0.0.1:8778", backend), ("*:80", f"127.0.0.1:{port}"))
    (directory / "haproxy.cfg").write_text(text)
    return [program("haproxy", "haproxy"), "-db", "-f", str(directory / "haproxy.cfg")]


@pytest.mark.parametrize("proxy", [behind_nginx, behind_haproxy])
def test_it_serves_below_a_prefix_behind_a_proxy(proxy, configured: Path, backend: int, open_directory: Path):
    port = servers.free_port()
    command = proxy(open_directory, f"127.0.0.1:{backend}", port)
    with servers.running(command, open_directory, port, path="/placement") as served:
        walk_through(f"{served.url}/placement")
        for stream in follow(f"{served.url}/placement"):
            stream.close()
        hold_up_nobody(f"{served.url}/placement")
    log_is_quiet(configured / "server.log")

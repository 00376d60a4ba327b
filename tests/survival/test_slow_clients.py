"""Clients that stop in the middle of a request or do not take their answers: they hold up nobody, and are cut off."""

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import create_engine

from placement.cli.http_worker import PIECE_BYTES, Limits, SlowClients, taken_in_time
from tests import servers
from tests.event_stream import listen
from tests.store.rows import add_providers
from tests.survival.load import send

CLIENTS = 40
THREADS = 2
PROVIDERS = 15_000
"""Their list is longer than what the kernel takes from the server for a client that does not read."""
TIMEOUT_S = 60
BODY = b'{"name": "host"}'
HEAD = (
    b"POST /resource_providers HTTP/1.1\r\nHost: placement\r\nX-Auth-Token: admin\r\nContent-Type: application/json\r\n"
)
UNFINISHED = {
    "nothing": (b"", HEAD + b"Content-Length: 16\r\n\r\n" + BODY),
    "an empty line": (b"\r\n", HEAD),
    "half a head": (HEAD, b"Content-Length: 16\r\n\r\n" + BODY),
    "half a body": (HEAD + b"Content-Length: 16\r\n\r\n" + BODY[:5], BODY[5:]),
    "half a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n" + BODY[:5], BODY[5:] + b"\r\n0\r\n\r\n"),
    "a false last chunk": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n17\r\n" + BODY + b"\r\n0\r\n\r\n",
        b"\r\n0\r\n\r\n",
    ),
}
IMPATIENT = """
from placement.cli.http_worker import HttpWorker, Limits

class Impatient(HttpWorker):
    limits = Limits(head_s=1, body_s=1, send_s=1)

worker_class = Impatient
"""

Connect = Callable[[str], socket.socket]


@contextlib.contextmanager
def serving(directory: Path, configuration: str) -> Iterator[str]:
    """Serve a cloud with gunicorn and a configuration file, and check that nothing went wrong in it."""
    servers.write_configuration(
        directory, servers.migrating(servers.default_sections(f"sqlite:///{directory}/p.sqlite"))
    )
    (directory / "gunicorn.conf.py").write_text(f"from placement.wsgi.gunicorn import *\n{configuration}\n")
    port = servers.free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", str(directory / "gunicorn.conf.py")]
    command += ["--bind", f"127.0.0.1:{port}", "--workers", "1", "--threads", str(THREADS)]
    with servers.running(command, directory, port) as served:
        yield served.url
    assert "Traceback" not in (directory / "server.log").read_text()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with our settings for gunicorn, the worker that ``placement serve`` has, too."""
    with serving(tmp_path_factory.mktemp("shipped"), "") as url:
        yield url


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same with the shortest limits, on a cloud of many providers."""
    directory = tmp_path_factory.mktemp("impatient")
    with serving(directory, IMPATIENT) as url:
        with create_engine(f"sqlite:///{directory}/p.sqlite").begin() as connection:
            add_providers(connection, PROVIDERS)
        yield url


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A function that connects to a server as a client that keeps little of an answer."""
    with contextlib.ExitStack() as open_:

        def connect(url: str) -> socket.socket:
            client = open_.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(TIMEOUT_S)
            client.connect((urlsplit(url).hostname, urlsplit(url).port))
            return client

        yield connect


def everything(client: socket.socket) -> bytes:
    """Return what the server sends until it ends the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while portion := client.recv(2**20):
            received += portion
    return received


def is_open(client: socket.socket) -> bool:
    """Tell whether the server has neither answered nor ended a connection."""
    client.setblocking(False)
    try:
        client.recv(1)
    except BlockingIOError:
        return True
    finally:
        client.settimeout(TIMEOUT_S)
    return False


def test_unfinished_requests_hold_up_nobody(shipped: str, connect: Connect):
    for form, (beginning, end) in UNFINISHED.items():
        clients = [connect(shipped) for _ in range(CLIENTS)]
        for client in clients:
            client.sendall(beginning)
        assert send(shipped, "GET", "/healthcheck").status == 200
        assert send(shipped, "GET", "/resource_providers?name=provider-1").status == 200
        assert all(is_open(client) for client in clients), form
        clients[0].sendall(end)
        assert clients[0].recv(12)[:10] in {b"HTTP/1.1 2", b"HTTP/1.1 4"}, form
        for client in clients:
            client.close()


def test_who_is_late_is_told_and_disconnected(impatient: str, connect: Connect):
    """A stream of the journal stays open; it was opened before all of them."""
    with listen(impatient) as stream:
        clients = {form: connect(impatient) for form in UNFINISHED}
        for form, client in clients.items():
            client.sendall(UNFINISHED[form][0])
        answers = {form: everything(client) for form, client in clients.items()}
        assert answers.pop("nothing") == b""
        assert {answer.split(b"\r\n")[0] for answer in answers.values()} == {b"HTTP/1.1 408 Request Timeout"}
        made = send(impatient, "POST", "/resource_providers", {"name": "later"}).document["uuid"]
        assert {row["provider_uuid"] for row in stream.next_event().data["entries"]} == {made}


def test_a_body_that_is_refused_unread_ends_the_connection(impatient: str, connect: Connect):
    """What follows must not be taken for the next request."""
    client = connect(impatient)
    client.sendall(HEAD + b"Content-Length: 100000000\r\n\r\n" + b"GET /healthcheck HTTP/1.1\r\n\r\n" * 9)
    answer = everything(client)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_endless_head_is_refused(shipped: str, connect: Connect):
    client = connect(shipped)
    with contextlib.suppress(ConnectionError):
        for _ in range(100):
            client.sendall(b"GET /?" + b"a" * 2**17)
    assert everything(client).startswith(b"HTTP/1.1 431 ")


def test_who_does_not_take_an_answer_is_disconnected(impatient: str, connect: Connect):
    """They hold every thread at first, but not the one for probes."""
    clients = [connect(impatient) for _ in range(2 * THREADS)]
    for client in clients:
        client.sendall(b"GET /resource_providers HTTP/1.1\r\nHost: placement\r\nX-Auth-Token: admin\r\n\r\n")
    assert {client.recv(12) for client in clients[:THREADS]} == {b"HTTP/1.1 200"}
    assert send(impatient, "GET", "/healthcheck").status == 200
    assert send(impatient, "GET", "/resource_providers?name=provider-1").status == 200
    whole = send(impatient, "GET", "/resource_providers")
    assert whole.status == 200
    for client in clients:
        assert len(everything(client)) < int(whole.headers["content-length"])


def test_of_many_slow_clients_the_slowest_is_disconnected():
    """Otherwise they would hold every thread, each with what is left of its answer."""
    slow, everybody = SlowClients(threads=4), Limits(send_s=0, slowest_bytes_per_s=1)

    def answer(_environ, _start_response):
        return [b"x" * 9 * PIECE_BYTES]

    application = taken_in_time(answer, everybody, slow)
    first, second, third = (iter(application({}, print)) for _ in range(3))
    next(second), next(first)  # so that the second takes longer, however late a thread gets its turn
    assert [len(next(first)) for _ in range(4)] == [PIECE_BYTES] * 4
    with pytest.raises(TimeoutError):
        next(second)
    assert len([*first]) == 4
    assert len([*third]) == 9


@pytest.mark.nightly
def test_crowds_of_idle_connections_leave_room(tmp_path: Path, connect: Connect):
    with serving(tmp_path, "worker_connections = 20") as url:
        for _ in range(CLIENTS):
            client = connect(url)
            client.sendall(b"GET / HTTP/1.1\r\nHost: placement\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"
        silent = [connect(url) for _ in range(CLIENTS)]
        assert send(url, "GET", "/healthcheck").status == 200
        assert is_open(silent[-1])

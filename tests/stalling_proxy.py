"""A TCP proxy in front of a database that stops forwarding or breaks connections, when it is told to or at a COMMIT."""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import make_url

MAX_WAIT_S = 60
PART = 65536


class StallingProxy:
    """Forwards until it is told to stall; what it has received by then is forwarded once it flows again.

    Args:
        target: the database's Unix socket, or its address and port.
        listen: the address to listen on.
        port: the port to listen on; 0 means any free one.
    """

    def __init__(self, target: str | tuple[str, int], *, listen: str = "127.0.0.1", port: int = 0) -> None:
        self._target = target
        self._trigger: bytes | None = None
        self._severing: tuple[bytes, bool] | None = None
        self._silenced: list[socket.socket] = []
        self.severed = 0
        self._flowing, self._holding = threading.Event(), threading.Semaphore(0)
        self._flowing.set()
        self._is_open_to_others = False
        self._is_closed = False
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((listen, port))
        self.port: int = self._listener.getsockname()[1]
        self._run(self._accept)

    def stall(self, *, old_connections_only: bool = False) -> None:
        """Stop forwarding."""
        self._is_open_to_others = old_connections_only
        self._flowing.clear()

    def stall_at(self, trigger: bytes) -> None:
        """Stop forwarding when a client sends something that matches a pattern."""
        self._trigger = trigger

    def sever_at(self, trigger: bytes, *, is_heard: bool) -> None:
        """Break each connection whose client sends something that matches; the database may still receive it."""
        self._severing = trigger, is_heard

    def wait_until_holding(self, count: int = 1) -> None:
        """Return once it has received something that it does not forward, that many times."""
        for _ in range(count):
            assert self._holding.acquire(timeout=MAX_WAIT_S)

    def resume(self) -> None:
        """Forward again."""
        self._trigger = self._severing = None
        self._flowing.set()

    def close(self) -> None:
        """Close it and all connections."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for end in [*self._ends]:
            _hang_up(end)
        self.resume()
        for thread in self._threads:
            thread.join(MAX_WAIT_S)
        self._listener.close()

    def _run(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._is_closed:
                client, _ = self._listener.accept()
                self._run(self._serve, client, self._is_open_to_others)

    def _serve(self, client: socket.socket, is_exempt: bool) -> None:
        with client, self._connected() as server:
            self._ends += (client, server)
            back = self._run(self._forward, server, client, True)
            self._forward(client, server, is_exempt)
            back.join()

    def _connected(self) -> socket.socket:
        if isinstance(self._target, tuple):
            return socket.create_connection(self._target)
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._target)
        return server

    def _forward(self, source: socket.socket, target: socket.socket, is_exempt: bool) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(PART):
                if not is_exempt and self._trigger is not None and re.search(self._trigger, part):
                    self._flowing.clear()
                if not is_exempt and not self._flowing.is_set():
                    self._holding.release()
                    self._flowing.wait()
                if source in self._silenced:
                    break
                if self._severing is not None and re.search(self._severing[0], part):
                    self.severed += 1
                    if not self._severing[1]:
                        break
                    self._silenced.append(target)
                target.sendall(part)
        for end in (source, target):
            _hang_up(end)


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxied(url: str) -> Iterator[tuple[StallingProxy, str]]:
    """Yield a proxy in front of a test's database, and the URL of the database behind it."""
    proxy = StallingProxy(socket_of(url))
    try:
        yield proxy, behind(url, "127.0.0.1", proxy.port)
    finally:
        proxy.close()


def behind(url: str, host: str, port: int) -> str:
    """Return the URL of a test's database behind a proxy."""
    over_tcp = make_url(url).difference_update_query(["host", "unix_socket"]).set(host=host, port=port)
    return over_tcp.render_as_string(hide_password=False)


def socket_of(of_test: str) -> str:
    """Return the Unix socket of a test's database."""
    url = make_url(of_test)
    if url.get_backend_name() == "postgresql":
        return str(Path(str(url.query["host"])) / f".s.PGSQL.{url.port or 5432}")
    return str(url.query["unix_socket"])

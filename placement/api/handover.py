"""Keeping a client's connection when its request is over, so that the server's thread can serve others meanwhile.

WSGI has no such thing: an answer that never ends holds a thread of the pool. gunicorn and uWSGI tell a request the
socket that it came by, though. It is replaced, under its own number, by the end of a pair of sockets that nobody reads:
the server sends its empty answer there, finds its client gone and closes it, with all its books in order. The true
connection belongs to whoever keeps it, and ends when that one closes it.
"""

import os
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from werkzeug.http import http_date

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

EVENT_STREAM = "text/event-stream"
KEEPER = "placement.keeper"
"""Where the environment of a request holds who is to keep its connection; headers of clients cannot reach this key."""

_PROTOCOLS = frozenset({"HTTP/1.0", "HTTP/1.1"})
_OURS = frozenset({"connection", "content-length", "date", "transfer-encoding"})
_LONGEST_HEAD_S = 5.0


class Keeper(Protocol):
    """Somebody who keeps a connection."""

    def keep(self, connection: "Connection") -> None:
        """Take a connection on which the head of the answer and what the view said was sent already."""

    def withdraw(self) -> None:
        """There will be no connection."""


class Connection:
    """A client's connection, and the other end of what the server took for it."""

    __slots__ = ("_decoy", "socket")

    def __init__(self, number: int) -> None:
        """Take the connection with this number from the server."""
        self.socket = socket.socket(fileno=os.dup(number))
        self._decoy, for_server = socket.socketpair()
        with for_server:
            os.dup2(for_server.fileno(), number, inheritable=False)
        self._decoy.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End it."""
        self.socket.close()
        self._decoy.close()


class HandsOver:
    """A WSGI application whose views may have the connection of a request kept. It has to be the outermost layer."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        if EVENT_STREAM not in environ.get("HTTP_ACCEPT", ""):
            return self._application(environ, start_response)
        heads: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], *rest: Any) -> Callable[[bytes], object]:
            heads.append((status, headers))
            return start_response(status, headers, *rest)

        body = self._application(environ, begin)
        keeper: Keeper | None = environ.get(KEEPER)
        number = connection_number(environ)
        if keeper is None or number is None:
            return body
        _hand_over(keeper, number, _head(*heads[-1]) + _whole(body))
        return []


def connection_number(environ: "WSGIEnvironment") -> int | None:
    """Return the file descriptor of a request's connection, where the server lends it and it carries plain HTTP/1."""
    if environ.get("SERVER_PROTOCOL") not in _PROTOCOLS:
        return None
    lent = environ.get("gunicorn.socket")
    if type(lent) is socket.socket:  # and not one that encrypts
        return lent.fileno()
    return _uwsgi_connection() if "uwsgi.version" in environ else None


def _uwsgi_connection() -> int | None:
    uwsgi: Any = import_module("uwsgi")
    runs_threads = "enable-threads" in uwsgi.opt or "threads" in uwsgi.opt
    return uwsgi.connection_fd() if runs_threads and "https-socket" not in uwsgi.opt else None


def _hand_over(keeper: Keeper, number: int, sent: bytes) -> None:
    connection = Connection(number)
    try:
        connection.socket.settimeout(_LONGEST_HEAD_S)
        connection.socket.sendall(sent)
    except OSError:  # the client has gone
        connection.close()
        keeper.withdraw()
    else:
        keeper.keep(connection)


def _head(status: str, headers: list[tuple[str, str]]) -> bytes:
    """Return the head of an answer that ends with its connection."""
    lines = [f"HTTP/1.1 {status}", f"Date: {http_date()}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers if name.lower() not in _OURS]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _whole(body: "Iterable[bytes]") -> bytes:
    try:
        return b"".join(body)
    finally:
        if close := getattr(body, "close", None):
            close()

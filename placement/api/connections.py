"""Connections that views lend from the WSGI server, for answers that never end.

WSGI has no notion of an answer that never ends without occupying a thread. But gunicorn and uWSGI expose
the request's socket. We replace it, under its own file descriptor, by one end of a socket pair: the server sends its
empty answer there, finds its client gone and closes the descriptor, its bookkeeping intact. The real connection now
belongs to its keeper, and ends when the keeper closes it.
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
"""The environ key for the object that is to keep the connection; no client header can set it."""

_PROTOCOLS = frozenset({"HTTP/1.0", "HTTP/1.1"})
_REPLACED = frozenset({"connection", "content-length", "date", "transfer-encoding"})
_MAX_HEAD_S = 5.0


class Keeper(Protocol):
    """An object that takes over connections."""

    def keep(self, connection: "Connection") -> None:
        """Take over a connection on which the head of the answer and the view's output were already sent."""

    def withdraw(self) -> None:
        """Learn that there will be no connection."""


class Connection:
    """A client's connection, and the peer of the socket that the server now holds instead."""

    __slots__ = ("_decoy", "socket")

    def __init__(self, number: int) -> None:
        """Take over the connection with this file descriptor from the server."""
        self.socket = socket.socket(fileno=os.dup(number))
        self._decoy, for_server = socket.socketpair()
        with for_server:
            os.dup2(for_server.fileno(), number, inheritable=False)
        self._decoy.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both ends."""
        self.socket.close()
        self._decoy.close()


class HandsOver:
    """WSGI middleware that lets views hand over the connection of a request for EVENT_STREAM; the outermost layer."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        heads: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Callable[[bytes], object]:
            heads.append((status, headers))
            return start_response(status, headers, *exc_info)

        body = self._application(environ, begin)
        keeper: Keeper | None = environ.get(KEEPER)
        number = connection_number(environ)
        if keeper is None or number is None:
            return body
        _hand_over(keeper, number, _head(*heads[-1]) + _whole(body))
        return []


def connection_number(environ: "WSGIEnvironment") -> int | None:
    """Return the file descriptor of a request's connection, if the server exposes it and it speaks plain HTTP/1."""
    if environ.get("SERVER_PROTOCOL") not in _PROTOCOLS:
        return None
    lent = environ.get("gunicorn.socket")
    if type(lent) is socket.socket:  # not a TLS socket
        return lent.fileno()
    return _uwsgi_connection() if "uwsgi.version" in environ else None


def _uwsgi_connection() -> int | None:
    uwsgi: Any = import_module("uwsgi")
    runs_threads = "enable-threads" in uwsgi.opt or "threads" in uwsgi.opt
    return uwsgi.connection_fd() if runs_threads and "https-socket" not in uwsgi.opt else None


def _hand_over(keeper: Keeper, number: int, sent: bytes) -> None:
    connection = Connection(number)
    try:
        connection.socket.settimeout(_MAX_HEAD_S)
        connection.socket.sendall(sent)
    except OSError:  # the client has gone
        connection.close()
        keeper.withdraw()
    else:
        keeper.keep(connection)


def _head(status: str, headers: list[tuple[str, str]]) -> bytes:
    """Return the head of an answer that ends when its connection does."""
    lines = [f"HTTP/1.1 {status}", f"Date: {http_date()}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers if name.lower() not in _REPLACED]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _whole(body: "Iterable[bytes]") -> bytes:
    try:
        return b"".join(body)
    finally:
        if close := getattr(body, "close", None):
            close()

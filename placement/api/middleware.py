"""What stands between the WSGI server and the application: browsers' origins, proxies' headers, lent connections.

*Addresses.* A change is committed before its ``location`` header is built from the address under which clients reach
this API, so what cannot appear in a URL is caught earlier: invalid forwarded values are dropped, and an invalid Host is
refused.

*Connections.* WSGI has no notion of an answer that never ends without occupying a thread. But gunicorn and uWSGI expose
the request's socket. We replace it, under its own file descriptor, by one end of a socket pair: the server sends its
empty answer there, finds its client gone and closes the descriptor, its bookkeeping intact. The real connection now
belongs to its keeper, and ends when the keeper closes it.
"""

import os
import re
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote

from oslo_config import cfg
from werkzeug.http import http_date
from werkzeug.middleware.proxy_fix import ProxyFix

from placement.errors import ConfigurationError, Invalid
from placement.settings import Settings
from placement.settings.loading import module_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

GROUP = "cors"


def wrap_with_cors(app: "WSGIApplication", settings: Settings) -> "WSGIApplication":
    """Wrap the application in the CORS middleware, or return it unchanged if no origin is allowed.

    It must come before authentication: browsers send preflight requests without credentials, to any path.

    Raises:
        ConfigurationError: an origin is allowed, but oslo.middleware is not installed or a value is invalid.
    """
    source = settings.source
    if source is None or not source.cors.allowed_origin:
        return app
    middleware = module_for("[cors] allowed_origin", "oslo_middleware.cors", package="oslo.middleware", extra="cors")
    try:
        return cast("WSGIApplication", middleware.CORS(app, _values_for(middleware, source)))
    except (cfg.Error, ValueError) as error:
        raise ConfigurationError(f"[cors] cannot be used: {error}") from error


def _values_for(middleware: Any, source: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Copy the values into a ConfigOpts of their own, because the library insists on its own option declarations."""
    values = cfg.ConfigOpts()
    # Versions before 7 only have this name.
    values.register_opts(middleware.CORS_OPTS, group=GROUP)
    for name, value in source.cors.items():
        values.set_override(name, value, group=GROUP)
    return values


# Underscores are invalid in domain names, but names of containers and of nginx upstreams have them.
HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{0,5}))?")
SCHEMES = frozenset({"http", "https"})
PREFIX = re.compile(r"/(?!/)[!-~]*")
MAX_PORT = 65535
IN_A_PATH = "!$&'()*+,/:;=@~%"


class BehindProxy:
    """A WSGI application behind one proxy, which reports in X-Forwarded-* headers what its clients sent."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._fixed: WSGIApplication = ProxyFix(application, x_for=1, x_proto=1, x_host=1, x_prefix=1)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        for name, is_good in _FORWARDED.items():
            # Only the last value of a list was set by our own proxy.
            sent = environ.get(name)
            if sent is not None and ('"' in sent or not is_good(sent.rpartition(",")[2].strip())):
                del environ[name]
        return self._fixed(environ, start_response)


def root_url(environ: dict[str, Any]) -> str:
    """Return the URL of this API's root, without a trailing slash.

    Raises:
        Invalid: the Host header is malformed.
    """
    host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    if not _is_host(host):
        raise Invalid("The Host header has to be a host, or a host and a port.")
    prefix = quote(environ.get("SCRIPT_NAME", "").encode("latin-1").rstrip(b"/"), safe=IN_A_PATH)
    scheme = environ["wsgi.url_scheme"]
    usual_port = {"http": ":80", "https": ":443"}.get(scheme)
    return f"{scheme}://{host.removesuffix(usual_port) if usual_port else host}{prefix}"


def _is_host(value: str) -> bool:
    match = HOST.fullmatch(value)
    return match is not None and int(match["port"] or 0) <= MAX_PORT


_FORWARDED: dict[str, Callable[[str], object]] = {
    "HTTP_X_FORWARDED_HOST": _is_host,
    "HTTP_X_FORWARDED_PROTO": SCHEMES.__contains__,
    "HTTP_X_FORWARDED_PREFIX": PREFIX.fullmatch,
}


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
    """WSGI middleware that lets views hand over their request's connection. It must be the outermost layer."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        if EVENT_STREAM not in environ.get("HTTP_ACCEPT", ""):
            return self._application(environ, start_response)
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

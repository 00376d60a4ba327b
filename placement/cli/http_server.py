"""gunicorn in this process, set up for a placement server. What is served, and what is said, is the caller's."""

import contextlib
import ipaddress
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication

from placement.errors import ConfigurationError, PlacementError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOG = logging.getLogger(__name__)

BACKLOG = 2048
KEEP_ALIVE_S = 30


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    return all(ipaddress.ip_address(address[0]).is_loopback for _, address in _addresses(host, 0))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any free one.

    Raises:
        ConfigurationError: the address is unknown, or the port is taken or forbidden.
    """
    family, address = _addresses(host, port)[0]
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"Cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}.") from error


def url_of(listener: socket.socket) -> str:
    """Return the URL under which a listening socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigurationError(f"Cannot listen on {host}: {error.strerror}.") from error
    return [(family, address) for family, _, _, _, address in found]


@dataclass(frozen=True, slots=True)
class Processes:
    """How many requests are served at once."""

    workers: int
    threads: int


def serve(
    application: "WSGIApplication",
    listeners: Sequence[socket.socket],
    processes: Processes,
    *,
    when_ready: Callable[[Any], None],
    make_again: "Callable[[], WSGIApplication] | None" = None,
) -> None:
    """Serve until a signal stops the server: at SIGTERM answers under way are finished, at Ctrl-C they are not.

    Args:
        application: what is served.
        listeners: the sockets.
        processes: how many workers and threads.
        when_ready: called with gunicorn's arbiter when the server is up.
        make_again: makes the application that is served after SIGHUP; without it, it stays the same.
    """
    options = _options(listeners, processes) | {"when_ready": when_ready}
    _run(HttpServer(application, options, make_again=make_again))


def _options(listeners: Sequence[socket.socket], processes: Processes) -> dict[str, Any]:
    return {
        "bind": [f"fd://{listener.detach()}" for listener in listeners],
        "worker_class": "gthread",
        "workers": processes.workers,
        "threads": processes.threads,
        "keepalive": KEEP_ALIVE_S,
        # Clients put hundreds of aggregates into one query string.
        "limit_request_line": 0,
        # What a proxy says is believed where [oslo_middleware] tells so, and by nobody before.
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        "secure_scheme_headers": {},
        "control_socket_disable": True,
        "preload_app": True,
        "loglevel": "warning",
    }


def _run(server: "HttpServer") -> None:
    starter = os.getpid()
    try:
        server.run()
    except SystemExit as end:
        if os.getpid() != starter:
            _end_worker(end.code)
        if end.code:
            raise


def _end_worker(status: object) -> None:
    """End a worker here: it is a fork, and what its callers' callers clean up belongs to the first process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status if isinstance(status, int) else 1)


class HttpServer(BaseApplication):
    """gunicorn with an application that is made already; no file and no variable of gunicorn's own is read."""

    def __init__(
        self,
        application: "WSGIApplication",
        options: dict[str, Any],
        *,
        make_again: "Callable[[], WSGIApplication] | None" = None,
    ) -> None:
        self._application = application
        self._options = options
        self._make_again = make_again
        super().__init__()

    def load_config(self) -> None:
        """Set the options, as far as this release has them: the control socket came with 25."""
        for name, value in self._options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application, which the workers share with this process."""
        return self._application

    def reload(self) -> None:
        """Make the application again at SIGHUP; the workers are then replaced, each when its answers are sent."""
        if self._make_again is not None:
            remake(self, self._make_again)
        super().reload()


def remake(gunicorn: Any, make: "Callable[[], WSGIApplication]") -> None:
    """Replace the application that a gunicorn serves, unless there is none with the configuration as it is now."""
    try:
        gunicorn.callable = make()
    except PlacementError as error:
        LOG.error("The configuration has changed but is not valid; the previous one stays in force. %s", error.message)

"""gunicorn in this process, configured for a placement server. Callers decide what to serve and what to print."""

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
    """Tell whether an address is reachable from this machine only."""
    return all(ipaddress.ip_address(address[0]).is_loopback for _, address in _addresses(host, 0))


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 means any free port.

    Raises:
        ConfigurationError: the address is unknown, or the port is in use or forbidden.
    """
    family, address = _addresses(host, port)[0]
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"Cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}.") from error


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
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
    """How many processes and threads serve requests."""

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
    """Serve until a signal stops the server. SIGTERM lets requests in progress finish, Ctrl-C does not.

    Args:
        application: the application to serve.
        listeners: the listening sockets.
        processes: the numbers of workers and threads.
        when_ready: called with gunicorn's arbiter once the server is up.
        make_again: creates the application to serve after SIGHUP; without it, the application stays the same.
    """
    options = _options(listeners, processes) | {"when_ready": when_ready}
    _run(HttpServer(application, options, make_again=make_again))


def _options(listeners: Sequence[socket.socket], processes: Processes) -> dict[str, Any]:
    return {
        "bind": [f"fd://{listener.detach()}" for listener in listeners],
        "worker_class": "placement.cli.http_worker.HttpWorker",
        "workers": processes.workers,
        "threads": processes.threads,
        "keepalive": KEEP_ALIVE_S,
        # Clients send hundreds of aggregates in one query string.
        "limit_request_line": 0,
        # Forwarded headers are trusted only if [oslo_middleware] says so, and never by gunicorn itself.
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
    """End a worker here: it is a fork, and its callers' clean-up is the first process's business."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status if isinstance(status, int) else 1)


class HttpServer(BaseApplication):
    """gunicorn with a ready-made application; none of gunicorn's own files and variables are read."""

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
        """Set the options that this release of gunicorn knows: the control socket came with 25."""
        for name, value in self._options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application, which the workers share with this process."""
        return self._application

    def reload(self) -> None:
        """Recreate the application on SIGHUP; workers are then replaced, each after finishing its requests."""
        if self._make_again is not None:
            remake(self, self._make_again)
        super().reload()


def remake(gunicorn: Any, make: "Callable[[], WSGIApplication]") -> None:
    """Replace the application that gunicorn serves, unless the present configuration is invalid."""
    try:
        gunicorn.callable = make()
    except PlacementError as error:
        LOG.error("The configuration has changed but is not valid; the previous one stays in force. %s", error.message)

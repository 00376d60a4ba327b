"""``placement serve``: the API on gunicorn, as configured, or without configuration on a SQLite file of the user's.

gunicorn runs in this process; ``placement demo`` uses it likewise.
"""

import contextlib
import dataclasses
import ipaddress
import logging
import math
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gunicorn.app.base import BaseApplication

from placement.app import create_app
from placement.auth.strategy import CONSOLE_PATH
from placement.cli.configuration import url_without_passwords
from placement.errors import ConfigurationError, PlacementError
from placement.logs import configure_logging
from placement.services.health import connection_limit
from placement.settings import DatabaseSettings, Settings, load, with_own_database
from placement.store.connection.database import Database
from placement.telemetry.shared_directory import runtime_directory
from placement.tuning import tune_process

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

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
        infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigurationError(f"Cannot listen on {host}: {error.strerror}.") from error
    return [(family, address) for family, _, _, _, address in infos]


@dataclass(frozen=True, slots=True)
class Processes:
    """How many processes and threads serve requests."""

    workers: int
    threads: int


def run_server(
    application: "WSGIApplication",
    listeners: Sequence[socket.socket],
    processes: Processes,
    *,
    when_ready: Callable[[Any], None],
    make_again: "Callable[[], WSGIApplication] | None" = None,
) -> None:
    """Serve until a signal stops the server. SIGTERM lets requests in progress finish, Ctrl-C does not.

    ``when_ready`` is called with gunicorn's arbiter once the server is up. ``make_again`` creates the application to
    serve after SIGHUP; without it, the application stays the same.
    """
    options = _options(listeners, processes) | {"when_ready": when_ready}
    _run_to_the_end(HttpServer(application, options, make_again=make_again))


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


def _run_to_the_end(server: "HttpServer") -> None:
    """Run the server. A worker ends here: it is a fork, and its callers' clean-up is the first process's business."""
    starter = os.getpid()
    try:
        server.run()
    except SystemExit as end:
        if os.getpid() != starter:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(end.code if isinstance(end.code, int) else 1)
        if end.code:
            raise


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


AUTHENTICATION = {
    "noauth2": "noauth2: no authentication; send X-Auth-Token: admin",
    "http_basic": "http_basic: users of {0.http_basic_file}",
    "keystone": "keystone: tokens as [keystone_authtoken] says",
}

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU quota: quota and period in microseconds, or ``max``."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8778, show_default=True, help="Port; 0 means any free one."
)
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one per core]")
@click.option("--threads", type=click.IntRange(1), default=4, show_default=True, help="Threads per process.")
@click.option("--config-file", "config_files", multiple=True, help="placement.conf, instead of the usual locations.")
@click.option("--insecure-noauth", is_flag=True, help="Serve without authentication on an address others can reach.")
def serve(
    *, host: str, port: int, workers: int | None, threads: int, config_files: tuple[str, ...], insecure_noauth: bool
) -> None:
    """Serve the API.

    The configuration is read as by the WSGI application: --config-file, $OS_PLACEMENT_CONFIG_DIR,
    /etc/placement/placement.conf, OS_<GROUP>__<OPTION> variables. Without any, the database is a SQLite file in your
    data directory, created and migrated as needed, and only callers on this machine are served (noauth2).
    """
    settings = _settings(config_files, host, insecure_noauth=insecure_noauth)
    configure_logging(settings)
    processes = Processes(workers or cores(), threads)
    with contextlib.ExitStack() as held:
        listener = held.enter_context(listen(host, port))
        settings, own_listeners = _metrics_listener(settings, held)
        application, database = _application(settings)
        limit = connection_limit(database)
        database.dispose()  # this process no longer needs a connection
        lines = _announcement(url_of(listener), settings, database, processes=processes, limit=limit)
        metrics = settings.metrics

        def make_again() -> "WSGIApplication":
            again = _settings(config_files, host, insecure_noauth=insecure_noauth)
            configure_logging(again)
            made, _ = _application(dataclasses.replace(again, metrics=metrics))
            LOG.info("The configuration was read again")
            return made

        listeners = [listener, *own_listeners]
        announce = lambda _arbiter: click.echo(lines)  # noqa: E731
        run_server(application, listeners, processes, when_ready=announce, make_again=make_again)


def _application(settings: Settings) -> "tuple[WSGIApplication, Database]":
    application = create_app(settings)
    tune_process()
    return application, application.extensions["placement"].database


def _metrics_listener(settings: Settings, held: contextlib.ExitStack) -> tuple[Settings, list[socket.socket]]:
    """Return the settings for this run's metrics, with a fresh directory, and the listeners for their port."""
    metrics = settings.metrics
    if not metrics.enabled:
        return settings, []
    if metrics.directory is None:
        with contextlib.suppress(OSError):
            made = held.enter_context(tempfile.TemporaryDirectory(prefix="metrics-", dir=runtime_directory()))
            metrics = dataclasses.replace(metrics, directory=made)
    listeners = []
    if metrics.address is not None:
        host, port = metrics.address
        listeners.append(held.enter_context(listen(host, port)))
        metrics = dataclasses.replace(metrics, listen=f"{host}:{listeners[0].getsockname()[1]}")
    return dataclasses.replace(settings, metrics=metrics), listeners


def _settings(config_files: tuple[str, ...], host: str, *, insecure_noauth: bool) -> Settings:
    settings = load(config_files)
    if settings.auth_strategy == "noauth2" and not is_loopback(host):
        if not insecure_noauth:
            raise ConfigurationError(
                f"[api] auth_strategy is noauth2, which checks nobody, and others can reach {host}: listen on "
                "127.0.0.1, configure http_basic or keystone, or say --insecure-noauth."
            )
        settings = dataclasses.replace(settings, auth_is_implicit=False)
    return with_own_database(settings)


def _announcement(url: str, settings: Settings, database: Database, *, processes: Processes, limit: int | None) -> str:
    console = f"  console         {url}{CONSOLE_PATH}\n" if settings.ui.enabled else ""
    where = url if settings.metrics.listen is None else f"http://{settings.metrics.listen}"
    metrics = f"\n  metrics         {where}/metrics" if settings.metrics.enabled else ""
    size = f"{processes.workers} x {processes.threads} threads, {_connections(settings.database, processes, limit)}"
    return (
        f"Placement is served at {url} (Ctrl-C stops it)\n{console}"
        f"  authentication  {AUTHENTICATION[settings.auth_strategy].format(settings)}\n"
        f"  database        {url_without_passwords(database)}\n"
        f"  processes       {size}{metrics}"
    )


def _connections(database: DatabaseSettings, processes: Processes, limit: int | None) -> str:
    """Describe how many connections may be open, one per request, and warn if the database allows fewer.

    Each process has one more for health checks, except on SQLite, which has no limit.
    """
    pool = processes.threads
    if database.max_pool_size is not None and database.max_overflow is not None:
        pool = min(pool, database.max_pool_size + database.max_overflow)
    if limit is None:
        return f"at most {processes.workers * pool} database connections"
    connections = processes.workers * (pool + 1)
    if connections > limit:
        LOG.warning(
            "%d processes with up to %d database connections each are more than the %d that the database allows: use "
            "fewer workers or threads, or raise its max_connections.",
            processes.workers,
            pool + 1,
            limit,
        )
    return f"at most {connections} of the {limit} connections that the database allows"


def cores(quota: Path = QUOTA) -> int:
    """Return how many cores this process may use, taking a container's quota into account."""
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = _share(quota)
    return present if share is None else max(1, min(present, math.ceil(share)))


def _share(quota: Path) -> float | None:
    """Return the quota in cores, or None if there is none ("max") or it is malformed."""
    try:
        quota_us, period_us = quota.read_text().split()
        return int(quota_us) / int(period_us)
    except (OSError, ValueError, ZeroDivisionError):
        return None

"""The observers of a server: the access log and the port for metrics, created from the settings."""

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from placement.candidates.headroom.plans import CountedRequest
from placement.logs import CURRENT_REQUEST
from placement.open_paths import HEALTH_PATHS, OPEN_PATHS
from placement.settings import Settings
from placement.settings.loading import module_for
from placement.store.connection.database import Database
from placement.store.connection.prepared import count_statements
from placement.telemetry.flavor_headroom import FlavorHeadroom
from placement.telemetry.record import CONTENT_TYPE, Meters, Observed, Observer, RequestRecord

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from placement.telemetry.metrics import Metrics

LOG = logging.getLogger("placement.access")

MAX_URL_LENGTH = 4096

PROBED = OPEN_PATHS | {"/metrics"}
"""Paths that load balancers, kubelet and monitoring poll every few seconds; successes are logged at DEBUG."""

ACCESS_LINE = '%s "%s %s" status: %s len: %s microversion: %s time: %.6f sql: %d'


def meters_for(database: Database, settings: Settings, flavors: Mapping[str, CountedRequest]) -> Meters:
    """Return the meters that the settings ask for; they also report the headroom of ``flavors``.

    Raises:
        ConfigurationError: the extra is not installed, or the directory is unusable.
    """
    if not settings.metrics.enabled:
        return Meters()
    module = module_for(
        "[metrics] enabled", "placement.telemetry.metrics", package="prometheus-client", extra="metrics"
    )
    locks, planner = settings.locks_for_all, settings.planner
    headroom = FlavorHeadroom(database, flavors, settings.headroom, planner=planner, locks=locks)
    return cast("Meters", module.Metrics(database, settings.metrics, headroom))


def watched(
    application: "WSGIApplication", database: Database, *, meters: Meters, settings: Settings
) -> "WSGIApplication":
    """Wrap the application in all that observes its requests."""
    observers: list[Observer] = [log_access] if settings.access_log.enabled else []
    when_begun: list[Observer] = []
    if settings.metrics.enabled:
        observers.append(cast("Observer", meters))
        when_begun.append(cast("Metrics", meters).begun)
    if observers:
        for engine in database.engines:
            count_statements(engine)
        application = Observed(application, observers, when_begun=when_begun)
    if settings.metrics.enabled and settings.metrics.address is not None:
        application = OwnListener(application, meters, settings.metrics.address[1])
    return application


class OwnListener:
    """WSGI middleware that serves nothing but metrics and health checks on one of the server's ports.

    It must be outside any middleware that trusts clients about the port they connected to.
    """

    def __init__(self, application: "WSGIApplication", meters: Meters, port: int) -> None:
        self._application = application
        self._meters = meters
        self._port = str(port)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Serve one request."""
        path = environ.get("PATH_INFO", "")
        if environ.get("SERVER_PORT") != self._port or path in HEALTH_PATHS:
            return self._application(environ, start_response)
        if path != "/metrics" or environ["REQUEST_METHOD"] != "GET":
            return _answer(start_response, "404 Not Found", b"Only /metrics, /healthcheck and /readycheck are here.\n")
        return _answer(start_response, "200 OK", self._meters.exposition() or b"")


def _answer(start_response: "StartResponse", status: str, text: bytes) -> list[bytes]:
    start_response(status, [("content-type", CONTENT_TYPE), ("content-length", str(len(text)))])
    return [text]


def log_access(record: RequestRecord) -> None:
    """Log a request in that request's context."""
    level = logging.DEBUG if record.route in PROBED and record.status < 400 else logging.INFO
    if not LOG.isEnabledFor(level):
        return
    environ = record.environ
    remote, method = environ.get("REMOTE_ADDR") or "-", environ["REQUEST_METHOD"]
    url, version = _url(record), record.version or "-"
    values = (remote, method, url, record.status, record.length, version, record.duration_s, record.statements)
    access = {
        "remote": remote,
        "method": method,
        "url": url,
        "route": record.route,
        "status": record.status,
        "length": record.length,
        "microversion": version,
        "duration_s": round(record.duration_s, 6),
        "sql": record.statements,
    }
    # Built by hand, because finding the caller's position costs a third of a line and the position is always this one.
    line = LOG.makeRecord(LOG.name, level, __file__, 0, ACCESS_LINE, values, None, "log_access", {"access": access})
    request = CURRENT_REQUEST.set(record.logged)
    try:
        LOG.handle(line)
    finally:
        CURRENT_REQUEST.reset(request)


def _url(record: RequestRecord) -> str:
    """Return path and query as sent, but escaped unless printable ASCII, since other characters could forge a line."""
    environ = record.environ
    url: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    if query := environ.get("QUERY_STRING"):
        url += "?" + query
    if len(url) > MAX_URL_LENGTH:
        url = url[:MAX_URL_LENGTH] + "..."
    return url if url.isascii() and url.isprintable() else url.encode("unicode_escape").decode("ascii")

"""The middleware around the application: traces, audit, and the observers of requests, as the settings ask for."""

import logging
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from oslo_config import cfg

from placement.auth.strategy import HEALTH_PATHS, OPEN_PATHS, is_open
from placement.candidates.headroom.totals import CountedRequest
from placement.domain.identity import CURRENT_REQUEST
from placement.errors import ConfigurationError
from placement.settings import Settings
from placement.settings.loading import module_for
from placement.store.connection.database import Database
from placement.store.connection.statements import count_statements, record_statements
from placement.telemetry.flavor_headroom import FlavorHeadroom
from placement.telemetry.record import CONTENT_TYPE, Meters, Observed, Observer, RequestRecord

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from placement.telemetry.metrics import Metrics

GROUP = "profiler"


def traces_statements(settings: Settings) -> bool:
    """Tell whether to trace SQL statements."""
    source = settings.source
    return source is not None and bool(source.profiler.enabled and source.profiler.trace_sqlalchemy)


def traced(app: "WSGIApplication", database: Database, settings: Settings) -> "WSGIApplication":
    """Wrap the application in OSprofiler's middleware, or return it unchanged if that is disabled."""
    source = settings.source
    if source is None or not source.profiler.enabled:
        return app
    values = _values(source)
    try:
        _osprofiler("initializer").init_from_conf(
            conf=values, context={}, project="placement", service="placement", host=socket.gethostname()
        )
    except Exception as error:
        # OSprofiler's drivers may raise anything; the operator needs one sentence.
        raise ConfigurationError(f"[profiler] cannot be used: {error}") from error
    if traces_statements(settings):
        tracer = _osprofiler("sqlalchemy")
        for engine in database.engines:
            record_statements(engine, tracer)
    made: WSGIApplication = _osprofiler("web").WsgiMiddleware(app, hmac_keys=values.profiler.hmac_keys, enabled=True)
    return made


def _osprofiler(module: str) -> Any:
    return module_for("[profiler] enabled", f"osprofiler.{module}", package="osprofiler", extra="profiler")


def _values(source: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Copy the values into a ConfigOpts of their own, with the options that only the library declares."""
    values = cfg.ConfigOpts()
    _osprofiler("opts").set_defaults(values)
    values([], default_config_files=[*source.config_file], default_config_dirs=[*source.config_dir])
    for name, value in source.profiler.items():
        values.set_override(name, value, group=GROUP)
    return values


def audited(app: "WSGIApplication", settings: Settings) -> "WSGIApplication":
    """Wrap the application in the audit middleware, or return it unchanged if that is disabled.

    It runs behind authentication, whose headers identify the actor; requests to open paths are not audited.
    """
    source = settings.source
    if source is None or not source.audit.enabled:
        return app
    middleware = module_for(
        "[audit] enabled", "keystonemiddleware.audit", package="keystonemiddleware", extra="keystone"
    )
    try:
        made = middleware.AuditMiddleware(
            app,
            audit_map_file=source.audit.audit_map_file,
            ignore_req_list=source.audit.ignore_req_list,
            service_name="placement",
            oslo_config_config=source,
        )
    except Exception as error:
        # The map or a driver may raise anything; the operator needs one sentence.
        raise ConfigurationError(f"[audit] cannot be used: {error}") from error

    def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        # The middleware has an ignore_path_list of its own only from release 13.
        served = app if is_open(environ.get("PATH_INFO", "")) else made
        return cast("Iterable[bytes]", served(environ, start_response))

    return application


LOG = logging.getLogger("placement.access")

MAX_URL_LENGTH = 4096

PROBED = OPEN_PATHS | {"/metrics"}
"""Paths that load balancers, kubelet and monitoring poll every few seconds; successes are logged at DEBUG."""

ACCESS_LINE = '%s "%s %s" status: %s len: %s microversion: %s time: %.6f sql: %d'


def meters_for(database: Database, settings: Settings, flavors: Mapping[str, CountedRequest]) -> Meters:
    """Return the meters that the settings ask for; they also report the headroom of ``flavors``."""
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

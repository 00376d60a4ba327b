"""Traces of requests and their SQL statements by OSprofiler, configured in ``[profiler]``."""

import socket
from typing import TYPE_CHECKING, Any, cast

from oslo_config import cfg

from placement.errors import ConfigurationError
from placement.open_paths import is_open
from placement.settings import Settings
from placement.settings.loading import module_for
from placement.store.connection.prepared import record_statements

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from placement.store.connection.database import Database

GROUP = "profiler"


def traces_statements(settings: Settings) -> bool:
    """Tell whether to trace SQL statements."""
    source = settings.source
    return source is not None and bool(source.profiler.enabled and source.profiler.trace_sqlalchemy)


def traced(app: "WSGIApplication", database: "Database", settings: Settings) -> "WSGIApplication":
    """Wrap the application in OSprofiler's middleware, or return it unchanged if that is disabled.

    Raises:
        ConfigurationError: it is enabled, but not installed or its connection is unusable.
    """
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

    Raises:
        ConfigurationError: it is enabled, but not installed or its map is unusable.
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

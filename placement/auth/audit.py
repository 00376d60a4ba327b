"""An audit trail of requests as CADF events, by keystonemiddleware's audit middleware, configured in ``[audit]``."""

from typing import TYPE_CHECKING, cast

from placement.errors import ConfigurationError
from placement.open_paths import is_open
from placement.settings import Settings
from placement.settings.loading import module_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


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

"""An audit trail of requests as CADF events, by keystonemiddleware's audit middleware, as ``[audit]`` says."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from placement.auth.headers import OPEN_PATHS
from placement.errors import ConfigurationError
from placement.settings import Settings

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


def audited(app: "WSGIApplication", settings: Settings) -> "WSGIApplication":
    """Return the application behind the audit middleware; as it is where that is not enabled.

    It stands behind authentication, whose headers tell it who acts; what is open to all leaves no event.

    Raises:
        ConfigurationError: it is enabled, and not installed or its map cannot be used.
    """
    source = settings.source
    if source is None or not source.audit.enabled:
        return app
    try:
        middleware = import_module("keystonemiddleware.audit")
    except ImportError as error:
        raise ConfigurationError(
            "[audit] enabled needs keystonemiddleware, which is not installed: "
            "pip install 'placement-server[keystone]'."
        ) from error
    try:
        made = middleware.AuditMiddleware(
            app,
            audit_map_file=source.audit.audit_map_file,
            ignore_req_list=source.audit.ignore_req_list,
            ignore_path_list=",".join(sorted(OPEN_PATHS)),
            service_name="placement",
            oslo_config_config=source,
        )
    except Exception as error:
        # Whatever the map or a driver raises: the operator needs the sentence.
        raise ConfigurationError(f"[audit] cannot be used: {error}") from error
    return cast("WSGIApplication", made)

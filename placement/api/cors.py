"""Cross-origin requests from browsers, as ``[cors]`` allows them, handled by oslo.middleware."""

from typing import TYPE_CHECKING, Any, cast

from oslo_config import cfg

from placement.errors import ConfigurationError
from placement.settings import Settings
from placement.settings.loading import module_for

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

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

"""Cross-origin requests of browsers, as ``[cors]`` allows them, by oslo.middleware."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from oslo_config import cfg

from placement.errors import ConfigurationError
from placement.settings import Settings

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

GROUP = "cors"


def wrap_with_cors(app: "WSGIApplication", settings: Settings) -> "WSGIApplication":
    """Return the application behind the CORS middleware; as it is where no origin is allowed.

    It must stand before everything else: browsers send preflight requests without credentials, to any path.

    Raises:
        ConfigurationError: an origin is allowed, and oslo.middleware is not installed or a value cannot be used.
    """
    source = settings.source
    if source is None or not source.cors.allowed_origin:
        return app
    middleware = _middleware()
    try:
        return cast("WSGIApplication", middleware.CORS(app, _values_for(middleware, source)))
    except (cfg.Error, ValueError) as error:
        raise ConfigurationError(f"[cors] cannot be used: {error}") from error


def _middleware() -> Any:
    try:
        return import_module("oslo_middleware.cors")
    except ImportError as error:
        raise ConfigurationError(
            "[cors] allowed_origin is set, and oslo.middleware is not installed: pip install 'placement-server[cors]'."
        ) from error


def _values_for(middleware: Any, source: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Return the values in an object of their own: the library insists on its own declarations of the options."""
    values = cfg.ConfigOpts()
    # Before oslo.middleware 7 they have this name alone.
    values.register_opts(middleware.CORS_OPTS, group=GROUP)
    for name, value in source.cors.items():
        values.set_override(name, value, group=GROUP)
    return values

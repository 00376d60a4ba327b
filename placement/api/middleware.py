"""What stands between the WSGI server and the application: browsers' origins and proxies' headers."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from oslo_config import cfg
from werkzeug.middleware.proxy_fix import ProxyFix

from placement.api.call import is_host
from placement.errors import ConfigurationError
from placement.settings import Settings
from placement.settings.loading import module_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

GROUP = "cors"


def wrap_with_cors(app: "WSGIApplication", settings: Settings) -> "WSGIApplication":
    """Wrap the application in the CORS middleware, or return it unchanged if no origin is allowed.

    It must come before authentication: browsers send preflight requests without credentials, to any path.
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


SCHEMES = frozenset({"http", "https"})
PREFIX = re.compile(r"/(?!/)[!-~]*")


class BehindProxy:
    """A WSGI application behind one proxy, which reports in X-Forwarded-* headers what its clients sent.

    What cannot appear in a URL is dropped.
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self._fixed: WSGIApplication = ProxyFix(application, x_for=1, x_proto=1, x_host=1, x_prefix=1)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        for name, is_good in _FORWARDED.items():
            # Only the last value of a list was set by our own proxy.
            sent = environ.get(name)
            if sent is not None and ('"' in sent or not is_good(sent.rpartition(",")[2].strip())):
                del environ[name]
        return self._fixed(environ, start_response)


_FORWARDED: dict[str, Callable[[str], object]] = {
    "HTTP_X_FORWARDED_HOST": is_host,
    "HTTP_X_FORWARDED_PROTO": SCHEMES.__contains__,
    "HTTP_X_FORWARDED_PREFIX": PREFIX.fullmatch,
}

"""The address under which clients reach this API: scheme, host and prefix, trusted only if they form a valid URL.

A change is committed before its ``location`` header is built from them, so anything that cannot appear in a URL is
caught earlier: invalid forwarded values are dropped, and an invalid Host is refused.
"""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from werkzeug.middleware.proxy_fix import ProxyFix

from placement.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# Underscores are invalid in domain names, but names of containers and of nginx upstreams have them.
HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{0,5}))?")
SCHEMES = frozenset({"http", "https"})
PREFIX = re.compile(r"/(?!/)[!-~]*")
MAX_PORT = 65535
IN_A_PATH = "!$&'()*+,/:;=@~%"


class BehindProxy:
    """A WSGI application behind one proxy, which reports in X-Forwarded-* headers what its clients sent."""

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


def root_url(environ: dict[str, Any]) -> str:
    """Return the URL of this API's root, without a trailing slash.

    Raises:
        Invalid: the Host header is malformed.
    """
    host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    if not _is_host(host):
        raise Invalid("The Host header has to be a host, or a host and a port.")
    prefix = quote(environ.get("SCRIPT_NAME", "").encode("latin-1").rstrip(b"/"), safe=IN_A_PATH)
    scheme = environ["wsgi.url_scheme"]
    usual_port = {"http": ":80", "https": ":443"}.get(scheme)
    return f"{scheme}://{host.removesuffix(usual_port) if usual_port else host}{prefix}"


def _is_host(value: str) -> bool:
    match = HOST.fullmatch(value)
    return match is not None and int(match["port"] or 0) <= MAX_PORT


def _is_scheme(value: str) -> bool:
    return value in SCHEMES


def _is_prefix(value: str) -> bool:
    return PREFIX.fullmatch(value) is not None


_FORWARDED = {
    "HTTP_X_FORWARDED_HOST": _is_host,
    "HTTP_X_FORWARDED_PROTO": _is_scheme,
    "HTTP_X_FORWARDED_PREFIX": _is_prefix,
}

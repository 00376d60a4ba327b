"""A separate port for the metrics that needs no token, for scrapers that cannot have one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from placement.open_paths import HEALTH_PATHS
from placement.telemetry.meters import CONTENT_TYPE, Meters

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


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

"""What the server says of itself: its versions, its health, its metrics.

GET /, /healthcheck and /readycheck need no credentials, and reveal nothing else. GET /metrics, for Prometheus, is
guarded by a policy rule; the separate metrics port, if configured, is not.
"""

from flask import Response
from markupsafe import escape

from placement.api.call import Call
from placement.api.routing import NO_SUCH_PATH, Route
from placement.api.versions import MAXIMUM, MINIMUM
from placement.auth.strategy import CONSOLE_PATH
from placement.errors import NotFound
from placement.telemetry.record import CONTENT_TYPE


def healthy(call: Call) -> Response:
    """Report that the process serves requests."""
    return call.json({"status": "ok"})


def ready(call: Call) -> Response:
    """Report whether the database is usable: 200, or 503 with the reason. ``writes`` says why the last write failed."""
    health = call.server.readiness.health()
    if health.problem is not None:
        return call.json({"status": "not ready", "reason": health.problem}, status=503)
    document = {
        "status": "ready",
        "usage": "kept" if call.database.keeps_usage else "summed",
        "journal": "written" if call.database.keeps_journal else "not written",
    }
    if call.database.write_fault is not None:
        # Reads still work, so clients should not be turned away from this server.
        document["writes"] = f"failing: {call.database.write_fault}"
    return call.json(document)


def show_metrics(call: Call) -> Response:
    """Return all metrics in the Prometheus text format."""
    text = call.server.meters.exposition()
    if text is None:
        raise NotFound(NO_SUCH_PATH)
    return Response(text, content_type=CONTENT_TYPE)


DISCOVERY = {
    "versions": [
        {
            "id": "v1.0",
            "min_version": str(MINIMUM),
            "max_version": str(MAXIMUM),
            "status": "CURRENT",
            # Deliberately relative: clients join it to the endpoint they know.
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}


_PAGE = '<!doctype html><title>Placement</title><p>This is the Placement API. <a href="{}">Open the console</a>.'


def discover(call: Call) -> Response:
    """Return the supported range of microversions, or, to a browser, a link to the console."""
    accepted = call.request.accept_mimetypes
    if accepted["text/html"] > accepted["application/json"] and call.server.settings.ui.enabled:
        return Response(_PAGE.format(escape(call.link(CONSOLE_PATH))), content_type="text/html; charset=utf-8")
    return call.json(DISCOVERY)


ROUTES = (
    Route("GET", "/", discover),
    Route("GET", "/healthcheck", healthy),
    Route("GET", "/readycheck", ready),
    Route("GET", "/metrics", show_metrics, rule="placement:metrics:show"),
)

"""GET /metrics, for Prometheus, guarded by a policy rule. The separate metrics port, if configured, is not."""

from flask import Response

from placement.api.call import Call
from placement.api.routing import NO_SUCH_PATH, Route
from placement.errors import NotFound
from placement.telemetry.meters import CONTENT_TYPE


def show_metrics(call: Call) -> Response:
    """Return all metrics in the Prometheus text format."""
    text = call.server.meters.exposition()
    if text is None:
        raise NotFound(NO_SUCH_PATH)
    return Response(text, content_type=CONTENT_TYPE)


ROUTES = (Route(method="GET", path="/metrics", view=show_metrics, rule="placement:metrics:show"),)

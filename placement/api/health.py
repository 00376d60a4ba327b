"""GET /healthcheck and /readycheck, for load balancers. They need no credentials, and reveal nothing else."""

from flask import Response

from placement.api.call import Call
from placement.api.routing import Route


def healthy(call: Call) -> Response:
    """Report that the process serves requests."""
    return call.json({"status": "ok"})


def ready(call: Call) -> Response:
    """Report whether the database is usable: 200, or 503 with the reason. ``writes`` says why the last write failed."""
    found = call.server.readiness.health()
    if found.problem is not None:
        return call.json({"status": "not ready", "reason": found.problem}, status=503)
    document = {
        "status": "ready",
        "usage": "kept" if call.database.keeps_usage else "summed",
        "journal": "written" if call.database.keeps_journal else "not written",
    }
    if call.database.write_fault is not None:
        # Reads still work, so clients should not be turned away from this server.
        document["writes"] = f"failing: {call.database.write_fault}"
    return call.json(document)


ROUTES = (
    Route(method="GET", path="/healthcheck", view=healthy),
    Route(method="GET", path="/readycheck", view=ready),
)

"""GET /: version discovery. Needs no credentials."""

from flask import Response

from placement.api.call import Call
from placement.api.routing import Route
from placement.api.versions import MAXIMUM, MINIMUM

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


def discover(call: Call) -> Response:
    """Return the supported range of microversions."""
    return call.json(DISCOVERY)


ROUTES = (Route(method="GET", path="/", view=discover),)

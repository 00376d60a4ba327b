"""The least an answer can cost: Flask returning stored bytes."""

from flask import Flask, Response

application = Flask("floor")
STORED: dict[int, bytes] = {}


@application.get("/<int:size>")
def stored(size: int) -> Response:
    """Return an answer of the given number of bytes."""
    if size not in STORED:
        STORED[size] = b"x" * size
    return Response(STORED[size], content_type="application/json")

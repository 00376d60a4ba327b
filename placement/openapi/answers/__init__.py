"""The bodies of all answers as JSON Schema, written by hand because the code that writes answers has no schemas.

The API's tests validate every answer that they receive against it, at the microversion of the request.
"""

from placement.api.fields import Json
from placement.api.versions import MINIMUM, Version, Versioned
from placement.openapi.answers import plain, planner
from placement.openapi.shapes import Ready, shape, shared

_ERROR = {
    "status": Ready(type="integer"),
    "title": str,
    "detail": str,
    "code?": str,
    "request_id?": str,
    "min_version?": str,
    "max_version?": str,
    "explanation?": shared("Explanation"),
}
ERRORS = shared("Errors")

_SHARED = {"Errors": {"errors": [_ERROR]}} | plain.COMPONENTS | planner.COMPONENTS
COMPONENTS: dict[str, Json] = {name: shape(example) for name, example in _SHARED.items()}
"""The shared schemas, by name."""

_ANSWERS: dict[tuple[str, str, int], Versioned[Json]] = {**plain.ANSWERS, **planner.ANSWERS}


def answers_to(method: str, path: str, status: int) -> list[tuple[Version, Json]]:
    """Return the schemas of an answer's body with the microversion from which each applies, oldest first.

    None if such an answer has no body. The path is the route's, with its placeholders.
    """
    if (answers := _ANSWERS.get((method, path, status))) is not None:
        return answers.items()
    return [(MINIMUM, ERRORS)] if status >= 400 else []


def answer_at(version: Version, method: str, path: str, status: int) -> Json | None:
    """Return the schema of an answer's body at a microversion, or None if it has no body."""
    fitting = [schema for since, schema in answers_to(method, path, status) if since <= version]
    return fitting[-1] if fitting else None

"""Error responses: one status per class of exception, one shape for all of them.

``{"errors": [{status, title, detail, request_id, code, ...}]}``; the useful sentence comes last in ``detail``, because
the ``openstack`` command shows only its last line. A client that accepts text/html or text/plain but not JSON gets the
same message as a page of that type.
"""

import logging
from html import escape
from http import HTTPStatus
from typing import Any

import orjson
from flask import Flask, Request, Response, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import MethodNotAllowed as WrongMethod

from placement.api.call import accepted_types
from placement.api.planner.explain_json import explanation_json
from placement.api.versions import MAXIMUM, MINIMUM, UnacceptableVersion
from placement.errors import (
    UNDEFINED_CODE,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    PlacementError,
    Unauthorized,
    Unavailable,
)
from placement.logs import RationedLog
from placement.services.planner.candidates import NoCandidate

LOG = logging.getLogger(__name__)


class MethodNotAllowed(PlacementError):
    """The path exists, the method on it does not."""

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"The method {method} is not allowed for this resource.")
        self.allowed = allowed


class UnsupportedMediaType(PlacementError):
    """The body is of a type the server does not read."""

    def __init__(self, media_type: str) -> None:
        super().__init__(f"The media type {media_type} is not supported, use application/json")


class NotAcceptable(PlacementError):
    """Only application/json is provided"""  # noqa: D415 - the exact message


STATUS: dict[type[PlacementError], HTTPStatus] = {
    Invalid: HTTPStatus.BAD_REQUEST,
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    NotFound: HTTPStatus.NOT_FOUND,
    Gone: HTTPStatus.GONE,
    MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    UnacceptableVersion: HTTPStatus.NOT_ACCEPTABLE,
    Conflict: HTTPStatus.CONFLICT,
    UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}

SENTENCES = {
    HTTPStatus.BAD_REQUEST: "The request cannot be carried out as it stands.",
    HTTPStatus.UNAUTHORIZED: "The request needs valid credentials.",
    HTTPStatus.FORBIDDEN: "Access was denied to this resource.",
    HTTPStatus.NOT_FOUND: "The resource could not be found.",
    HTTPStatus.GONE: "The resource is no longer there.",
    HTTPStatus.METHOD_NOT_ALLOWED: "",
    HTTPStatus.NOT_ACCEPTABLE: "The resource cannot be provided in the form asked for.",
    HTTPStatus.CONFLICT: "The request conflicts with the present state of the resource.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The request body is larger than this server reads.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The form of the request body is not supported here.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The service cannot answer right now.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server met an error that it did not expect.",
}


def register(app: Flask) -> None:
    """Make the application answer every exception in this module's shape."""
    app.register_error_handler(PlacementError, _placement_error)
    app.register_error_handler(HTTPException, _http_exception)
    log = RationedLog(LOG)

    def unexpected(error: Exception) -> Response:
        log_unexpected(log, error)
        return error_response(request, HTTPStatus.INTERNAL_SERVER_ERROR, "")

    app.register_error_handler(Exception, unexpected)


def status_of(error: PlacementError) -> HTTPStatus:
    """Return the HTTP status for a domain error."""
    for class_ in type(error).__mro__:
        if class_ in STATUS:
            return STATUS[class_]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def _placement_error(error: PlacementError) -> Response:
    response = error_response(request, status_of(error), error.message, code=error.code, **_extra(error))
    if isinstance(error, MethodNotAllowed):
        response.headers["allow"] = ", ".join(error.allowed)
    if isinstance(error, Unavailable) and error.retry_after_s is not None:
        response.headers["retry-after"] = str(error.retry_after_s)
    return response


def _extra(error: PlacementError) -> dict[str, Any]:
    if isinstance(error, NoCandidate):
        explained = {} if error.explained is None else {"explanation": explanation_json(error.explained)}
        cut_off = {} if error.complete else {"complete": False}
        return {**explained, **cut_off, **({} if error.member is None else {"consumer": error.member})}
    if isinstance(error, UnacceptableVersion):
        return {"max_version": str(MAXIMUM), "min_version": str(MINIMUM)}
    return {}


def _http_exception(error: HTTPException) -> Response:
    status = HTTPStatus(error.code or 500)
    is_told = status in {HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_ENTITY_TOO_LARGE}
    message = "" if is_told else error.description or ""
    response = error_response(request, status, message)
    if isinstance(error, WrongMethod) and error.valid_methods:
        response.headers["allow"] = ", ".join(sorted(error.valid_methods))
    return response


def log_unexpected(log: RationedLog, error: Exception) -> None:
    """Log an unexpected error with its traceback."""
    cause = f"{type(error).__name__} while serving {request.method} {request.url_rule}"
    sentence = "Unexpected error while serving %s %s"
    log.write(logging.ERROR, cause, sentence, request.method, request.path, exc_info=error)


def error_response(
    received: Request, status: HTTPStatus, message: str, *, code: str = UNDEFINED_CODE, **extra: Any
) -> Response:
    """Build the answer for an error; ``extra`` has further keys of the error object. Its code is shown from 1.23 on."""
    general = SENTENCES.get(status, status.phrase)
    detail = general if message in ("", general) else f"{general}\n\n{message}".strip()
    if page := _page(received, status, detail):
        return page
    error = {"status": int(status), "title": status.phrase, "detail": detail, **extra}
    if (request_id := g.get("request_id")) is not None:
        error["request_id"] = request_id
    version = g.get("version")
    if version is not None and version.minor >= 23:
        error["code"] = code
    return Response(orjson.dumps({"errors": [error]}), status, content_type="application/json")


def _page(received: Request, status: HTTPStatus, detail: str) -> Response | None:
    """Return the error as HTML or plain text where the client accepts that and not JSON."""
    accepted = accepted_types(received)
    if accepted is None or accepted["application/json"]:
        return None
    title = f"{int(status)} {status.phrase}"
    if accepted["text/html"]:
        body = f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{escape(detail)}</p></body></html>"
        return Response(body, status, content_type="text/html; charset=UTF-8")
    if accepted["text/plain"]:
        return Response(f"{title}\n\n{detail}\n", status, content_type="text/plain; charset=UTF-8")
    return None

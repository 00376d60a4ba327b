"""What happens to every request around its view: authentication, microversion, routing, headers."""

from contextlib import suppress
from typing import Protocol
from uuid import uuid4

from flask import Flask, Response, g, request

from placement.api import errors
from placement.api.call import Call, Server
from placement.api.middleware import root_url
from placement.api.routes import PLAIN_ROUTES, ROUTES
from placement.api.routing import NO_SUCH_PATH, LazyRule, Resource, is_planner_path, resources
from placement.api.versions import MAXIMUM, UnacceptableVersion, Version, requested_version
from placement.domain.identity import CURRENT_ORIGIN, Identity, Origin
from placement.errors import Invalid, NotFound, Unauthorized
from placement.logs import CURRENT_REQUEST, log_for, log_for_none
from placement.open_paths import is_console, is_open
from placement.telemetry.record import KEY as RECORD
from placement.telemetry.record import RequestRecord
from placement.tuning import collect_if_due

READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""


class Identifier(Protocol):
    """Identifies callers."""

    def identify(self, environ: dict[str, object]) -> Identity | None:
        """Return the caller, or None if the credentials are missing or wrong."""


def install(app: Flask, server: Server, strategy: Identifier) -> None:
    """Install the API in a Flask application."""
    # Clients turn a redirected POST into a GET, so paths are never redirected: they either exist or do not.
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.before_request(collect_if_due)
    app.before_request(lambda: _begin(strategy))
    app.after_request(_finish)
    app.teardown_request(_end)
    errors.register(app)
    routes = ROUTES if server.settings.planner_api.enabled else PLAIN_ROUTES
    for path, resource in resources(routes).items():
        # Without ``methods``, werkzeug accepts every method, so that 405 and HEAD are handled in one place.
        app.url_map.add(LazyRule(path, endpoint=path))
        app.view_functions[path] = _endpoint(server, resource)


def _begin(strategy: Identifier) -> None:
    """Identify the caller and the microversion, in the reference's order."""
    environ = request.environ
    g.request_id = request_id = f"req-{uuid4()}"
    g.version = g.identity = None
    if request.method not in READING:
        g.root_url = root_url(environ)  # Before anything is changed: it may refuse the request.
    sent_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
    log_for(request_id, sent_id)
    path = environ.get("PATH_INFO", "")
    if not is_open(path):
        g.identity = identity = strategy.identify(environ)
        if identity is None:
            raise Unauthorized
        log_for(request_id, sent_id, identity)
        if request.method not in READING:
            route = request.url_rule.rule if request.url_rule else ""
            owner = identity.user_id, identity.project_id or ""
            CURRENT_ORIGIN.set(Origin(request_id, *owner, f"{request.method} {route}"))
    if not is_console(path):  # console pages have no microversion
        requested = environ.get("HTTP_OPENSTACK_API_VERSION")
        g.version = _newest_for(requested) if is_planner_path(path) else requested_version(requested)
    _check_length(environ)
    # werkzeug ignores how many slashes a path begins with.
    if "\0" in path or path.startswith("//"):
        raise NotFound(NO_SUCH_PATH)


def _newest_for(requested: str | None) -> Version:
    """Return the newest microversion, whichever is requested: the planner API has no microversions.

    Raises:
        Invalid: the requested microversion is malformed.
    """
    with suppress(UnacceptableVersion):
        requested_version(requested)
    return MAXIMUM


def _end(_error: BaseException | None) -> None:
    CURRENT_ORIGIN.set(None)
    log_for_none()


def _check_length(environ: dict[str, str]) -> None:
    length = environ.get("CONTENT_LENGTH")
    if not length:
        return
    if not length.isdecimal():
        raise Invalid("content-length header must be an integer")
    if int(length) > 0 and not environ.get("CONTENT_TYPE"):
        raise Invalid("content-type header required when content-length > 0")


def _endpoint(server: Server, resource: Resource):  # type: ignore[no-untyped-def]
    def serve(**parts: str) -> Response:
        return resource.serve(Call(server, request, g.version, g.identity), **parts)

    return serve


def _finish(response: Response) -> Response:
    # The outer middleware knows nothing of Flask.
    record: RequestRecord | None = request.environ.get(RECORD)
    if record is not None:
        record.logged = CURRENT_REQUEST.get()
        record.version = str(g.version) if g.version else None
        record.route = request.url_rule.rule if request.url_rule else record.route
    response.headers["x-openstack-request-id"] = g.request_id
    return errors.version_headers(response)

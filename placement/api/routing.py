"""From a request to its view and back: caller, microversion, route, media types, policy, in the reference's order.

Routes are data. A path is never redirected, because clients turn a redirected POST into a GET.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from time import monotonic
from typing import Any
from uuid import uuid4

from flask import Flask, Request, Response, g, request
from werkzeug.routing import Rule

from placement.api import errors
from placement.api.call import JSON, Call, Server, accepted_types, root_url
from placement.api.connections import EVENT_STREAM, HandsOver
from placement.api.errors import MethodNotAllowed, NotAcceptable, UnsupportedMediaType
from placement.api.fields import Field
from placement.api.versions import MAXIMUM, MINIMUM, SERVICE, UnacceptableVersion, Version, Versioned, requested_version
from placement.auth.strategy import is_console, is_open
from placement.domain.identity import CURRENT_REQUEST, Identity, serve_request
from placement.errors import Invalid, NotFound, Unauthorized
from placement.telemetry.record import KEY as RECORD
from placement.telemetry.record import RequestRecord
from placement.tuning import MANY_NEW_OBJECTS, collect

View = Callable[..., Response]

NO_SUCH_PATH = "The resource could not be found."

PLANNER_PATH = "/planner/v1"


def is_planner_path(path: str) -> bool:
    """Tell whether a path belongs to the planner API."""
    return path == PLANNER_PATH or path.startswith(PLANNER_PATH + "/")


@dataclass(frozen=True, slots=True)
class Route:
    """A view and its preconditions.

    Args:
        method, path: where the view is served; the path is in werkzeug's notation.
        view: called with the Call and the variable parts of the path.
        rule: the policy rule that the caller must pass, if any.
        view_rules: rules that the view checks itself, for what only it knows.
        since, until: the microversions it serves, both included.
        answers_json: whether an ``accept`` header that excludes JSON is refused.
        also_answers: another media type that the view can answer with, for clients that prefer it.
        media_first: whether media types are checked before the microversion (aggregates do).
        status_if_unserved: the status for microversions outside since and until.
        body: what the view validates the body with, which has to be JSON; None if it reads none.
        query: what the view validates the query with, for the API reference.
    """

    method: str
    path: str
    view: View
    _: KW_ONLY
    rule: str | None = None
    view_rules: tuple[str, ...] = ()
    since: tuple[int, int] = MINIMUM
    until: tuple[int, int] = MAXIMUM
    answers_json: bool = False
    also_answers: str | None = None
    media_first: bool = False
    status_if_unserved: int = 404
    body: Versioned[Field] | Field | None = None
    query: Versioned[dict[str, Field]] | dict[str, Field] | None = None


def planner_route(method: str, path: str, view: View, *, rule: str | None = None, **options: Any) -> Route:
    """Return a route of the planner API, by the end of its path and of its rule; it answers JSON."""
    name = None if rule is None else f"placement:planner:{rule}"
    return Route(method, PLANNER_PATH + path, view, rule=name, **{"answers_json": True, **options})


class LazyRule(Rule):
    """A path that can be matched at once but is compiled for ``url_for`` only on first use, which mostly never comes.

    werkzeug compiles every rule when it is added, which used to be half the time to create an application.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:  # noqa: FBT001, FBT002
        compiled = cache(partial(super()._compile_builder, append_unknown))

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            return compiled()(rule, **values)

        return build


class MountedFlask(Flask):
    """A Flask application that treats an empty path as ``/``, because the service is often mounted under a prefix."""

    url_rule_class = LazyRule

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Serve one request; an event stream may be given a connection of its own."""
        is_stream = EVENT_STREAM in environ.get("HTTP_ACCEPT", "")
        return (HandsOver(self.wsgi_app) if is_stream else self.wsgi_app)(environ, start_response)

    def wsgi_app(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Serve one request."""
        if not environ.get("PATH_INFO"):
            environ["PATH_INFO"] = "/"
        return super().wsgi_app(environ, start_response)

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function unchanged: no view is a coroutine, and Flask would check on every request."""
        return func


class Resource:
    """All routes of one path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.by_method: dict[str, list[Route]] = defaultdict(list)
        for route in routes:
            self.by_method[route.method].append(route)

    def serve(self, call: Call, **parts: str) -> Response:
        """Answer a call on this path."""
        route = self._route(call)
        if route.rule is not None:
            call.authorize(route.rule)
        response = route.view(call, **parts)
        assert isinstance(response, Response)
        return response

    def _route(self, call: Call) -> Route:
        routes = self.by_method.get(call.request.method)
        if routes is None:
            raise MethodNotAllowed(call.request.method, tuple(self.by_method))
        if routes[0].media_first:
            check_media(routes[0], call.request)
        for route in routes:
            if route.since <= call.version <= route.until:
                check_media(route, call.request)
                return route
        if routes[0].status_if_unserved == 405:
            raise MethodNotAllowed(call.request.method, self._methods_at(call.version))
        raise NotFound(NO_SUCH_PATH)

    def _methods_at(self, version: Version) -> tuple[str, ...]:
        return tuple(
            method
            for method, routes in self.by_method.items()
            if any(route.since <= version <= route.until for route in routes)
        )


def resources(routes: Iterable[Route]) -> dict[str, Resource]:
    """Group routes by path, keeping the order of methods."""
    by_path: dict[str, list[Route]] = defaultdict(list)
    for route in routes:
        by_path[route.path].append(route)
    return {path: Resource(of_path) for path, of_path in by_path.items()}


def check_media(route: Route, request: Request) -> None:
    """Refuse a body that is not JSON, and a client that does not accept JSON."""
    if route.body is not None and request.mimetype != JSON:
        raise UnsupportedMediaType(request.mimetype or "None")
    accepted = accepted_types(request) if route.answers_json else None
    if accepted is not None and not (accepted[JSON] or (route.also_answers and accepted[route.also_answers])):
        raise NotAcceptable


READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""


Identify = Callable[[dict[str, Any]], Identity | None]
"""Returns the caller of a request by its WSGI environment, or None if the credentials are missing or wrong."""


def install(
    app: Flask, server: Server, routes: Iterable[Route], *, identify: Identify, identify_visitor: Identify
) -> None:
    """Install the API in a Flask application; ``identify_visitor`` is for the pages of the console."""
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.before_request(lambda: _begin(identify, identify_visitor))
    app.before_request(lambda: _begin_what_is_due(server))
    app.after_request(_finish)
    app.teardown_request(_end)
    errors.register(app)
    for path, resource in resources(routes).items():
        # Without ``methods``, werkzeug accepts every method, so that 405 and HEAD are handled in one place.
        app.url_map.add(LazyRule(path, endpoint=path))
        app.view_functions[path] = _endpoint(server, resource)


def _begin(identify: Identify, identify_visitor: Identify) -> None:
    """Identify the caller and the microversion, in the reference's order."""
    environ, may_write = request.environ, request.method not in READING
    g.request_id = request_id = f"req-{uuid4()}"
    g.version = g.identity = None
    if may_write:
        g.root_url = root_url(environ)  # Before anything is changed: it may refuse the request.
    sent_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
    serve_request(request_id, sent_id)
    path = environ.get("PATH_INFO", "")
    in_console = is_console(path)
    if not is_open(path):
        g.identity = identity = (identify_visitor if in_console else identify)(environ)
        if identity is None:
            raise Unauthorized
        route = f"{request.method} {request.url_rule.rule if request.url_rule else ''}" if may_write else None
        serve_request(request_id, sent_id, identity, route)
    if not in_console:  # its pages have no microversion
        requested = environ.get("HTTP_OPENSTACK_API_VERSION")
        g.version = _newest_for(requested) if is_planner_path(path) else requested_version(requested)
    _check_length(environ)
    # werkzeug ignores how many slashes a path begins with.
    if "\0" in path or path.startswith("//"):
        raise NotFound(NO_SUCH_PATH)


def _begin_what_is_due(server: Server) -> None:
    if gc.get_count()[0] > MANY_NEW_OBJECTS:
        collect()
    now = monotonic()
    for work in server.background:
        if now >= work.due:
            work.begin()


def _newest_for(requested: str | None) -> Version:
    """Return the newest microversion, whichever is requested; Invalid if that is malformed. The planner has none."""
    with suppress(UnacceptableVersion):
        requested_version(requested)
    return MAXIMUM


def _end(_error: BaseException | None) -> None:
    CURRENT_REQUEST.set(None)


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
    if g.version is not None:
        response.headers["openstack-api-version"] = f"{SERVICE} {g.version}"
        vary = response.headers.get("vary")
        response.headers["vary"] = f"{vary}, openstack-api-version" if vary else "openstack-api-version"
    return response

"""Routes as data, and how a request finds its view: method, microversion, media types, policy, in that order."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any

from flask import Request, Response
from werkzeug.routing import Rule

from placement.api.call import JSON, Call
from placement.api.errors import MethodNotAllowed, NotAcceptable, UnsupportedMediaType, accepted_types
from placement.api.fields import Field
from placement.api.versions import MAXIMUM, MINIMUM, Version, Versioned
from placement.errors import NotFound

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

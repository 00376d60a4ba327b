"""GET /planner/v1: which parts of the planner are served, and whether candidates are ranked."""

from collections import defaultdict
from collections.abc import Iterable

from flask import Response

from placement.api.call import Call
from placement.api.routing import Route, View

PATH = "/planner/v1"


def is_planner_path(path: str) -> bool:
    """Tell whether a path belongs to the planner API."""
    return path == PATH or path.startswith(PATH + "/")


def shower(routes: Iterable[Route]) -> View:
    """Return a view that lists these routes."""
    methods: dict[str, list[str]] = defaultdict(list)
    for route in routes:
        methods[route.path].append(route.method)

    def show(call: Call) -> Response:
        settings = call.server.settings
        ranking = {
            "enabled": settings.ranking.enabled,
            "near_equal": settings.ranking.near_equal,
            "default_profile": settings.planner.default_profile,
        }
        return call.json({"version": "v1", "ranking": ranking, "resources": methods})

    return show

"""The API's routes: all of them, and those served while the planner is disabled."""

from collections import defaultdict

from flask import Response

from placement.api import (
    allocation_candidates,
    allocations,
    health,
    inventories,
    marks,
    resource_classes,
    resource_providers,
)
from placement.api.call import Call
from placement.api.planner import bulk_read, candidates, claims, fair_share, headroom, journal, profiles, trees
from placement.api.routing import Route, planner_route

PLAIN_ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    *allocation_candidates.ROUTES,
    *resource_providers.ROUTES,
    *inventories.ROUTES,
    *marks.ROUTES,
    *resource_classes.ROUTES,
    *allocations.ROUTES,
)

_PLANNER_RESOURCES: tuple[Route, ...] = (
    *bulk_read.ROUTES,
    *candidates.ROUTES,
    *claims.ROUTES,
    *fair_share.ROUTES,
    *headroom.ROUTES,
    *journal.ROUTES,
    *profiles.ROUTES,
    *trees.ROUTES,
)


def show_planner(call: Call) -> Response:
    """List the routes of the planner, and tell whether candidates are ranked."""
    methods: dict[str, list[str]] = defaultdict(list)
    for route in _PLANNER_RESOURCES:
        methods[route.path].append(route.method)
    settings = call.server.settings
    ranking = {
        "enabled": settings.ranking.enabled,
        "near_equal": settings.ranking.near_equal,
        "default_profile": settings.planner.default_profile,
    }
    return call.json({"version": "v1", "ranking": ranking, "resources": methods})


ROUTES: tuple[Route, ...] = (*PLAIN_ROUTES, planner_route("GET", "", show_planner, rule="show"), *_PLANNER_RESOURCES)

"""The routes of the planner API."""

from placement.api.planner import (
    audit,
    candidates,
    claims,
    explain,
    fair_share,
    headroom,
    inventory,
    journal,
    profiles,
    scores,
    trees,
)
from placement.api.planner.index import PATH, shower
from placement.api.routing import Route

_RESOURCES: tuple[Route, ...] = (
    *audit.ROUTES,
    *candidates.ROUTES,
    *claims.ROUTES,
    *explain.ROUTES,
    *fair_share.ROUTES,
    *headroom.ROUTES,
    *inventory.ROUTES,
    *journal.ROUTES,
    *profiles.ROUTES,
    *scores.ROUTES,
    *trees.ROUTES,
)

ROUTES: tuple[Route, ...] = (
    Route("GET", PATH, shower(_RESOURCES), rule="placement:planner:show", answers_json=True),
    *_RESOURCES,
)

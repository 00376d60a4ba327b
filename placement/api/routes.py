"""The API's routes: all of them, and those served while the planner is disabled."""

from placement.api import (
    aggregates,
    allocation_candidates,
    allocations,
    health,
    inventories,
    reshaper,
    resource_classes,
    resource_providers,
    traits,
    usages,
)
from placement.api.planner import routes as planner
from placement.api.routing import Route

PLAIN_ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    *allocation_candidates.ROUTES,
    *resource_providers.ROUTES,
    *inventories.ROUTES,
    *aggregates.ROUTES,
    *traits.ROUTES,
    *resource_classes.ROUTES,
    *allocations.ROUTES,
    *usages.ROUTES,
    *reshaper.ROUTES,
)

ROUTES: tuple[Route, ...] = (*PLAIN_ROUTES, *planner.ROUTES)

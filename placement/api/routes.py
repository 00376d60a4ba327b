"""All routes of the API, in one list."""

from placement.api import (
    aggregates,
    allocation_candidates,
    allocations,
    health,
    inventories,
    reshaper,
    resource_classes,
    resource_providers,
    root,
    traits,
    usages,
)
from placement.api.routing import Route

ROUTES: tuple[Route, ...] = (
    *root.ROUTES,
    *allocation_candidates.ROUTES,
    *health.ROUTES,
    *resource_providers.ROUTES,
    *inventories.ROUTES,
    *aggregates.ROUTES,
    *traits.ROUTES,
    *resource_classes.ROUTES,
    *allocations.ROUTES,
    *usages.ROUTES,
    *reshaper.ROUTES,
)

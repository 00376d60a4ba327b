"""All routes of the API, in one list."""

from placement.api import allocation_candidates, allocations, health, resource_classes, root, usages
from placement.api.routing import Route

ROUTES: tuple[Route, ...] = (
    *root.ROUTES,
    *allocation_candidates.ROUTES,
    *health.ROUTES,
    *resource_classes.ROUTES,
    *allocations.ROUTES,
    *usages.ROUTES,
)

"""All routes of the API, in one list."""

from placement.api import allocation_candidates, health, resource_classes, root
from placement.api.routing import Route

ROUTES: tuple[Route, ...] = (
    *root.ROUTES,
    *allocation_candidates.ROUTES,
    *health.ROUTES,
    *resource_classes.ROUTES,
)

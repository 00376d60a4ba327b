"""The parameters of an operation: the microversion, the variables in its path, and its query parameters."""

import re
from collections.abc import Iterable, Sequence

from placement.api.candidate_query import KEYS, SUFFIX
from placement.api.query import ValueRule
from placement.api.routing import Route
from placement.api.versions import MAXIMUM, MINIMUM, Version, Versioned
from placement.openapi.json_shapes import Json
from placement.openapi.notes import GROUPS, PARAMETERS

PLACEHOLDER = re.compile(r"<(?:[a-z]+:)?(?P<name>[a-z_]+)>")
GROUP_KEYS = ("resources", "required", "member_of", "in_tree")

MICROVERSION: Json = {
    "name": "OpenStack-API-Version",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "default": f"placement {MINIMUM}", "pattern": "^placement (1\\.[0-9]{1,2}|latest)$"},
    "example": f"placement {MAXIMUM}",
}


def path_of(route: Route) -> str:
    """Return a route's path in OpenAPI's notation."""
    return PLACEHOLDER.sub(r"{\g<name>}", route.path)


def parameters_of(routes: Sequence[Route]) -> list[Json]:
    """Return the parameters of an operation, which several routes may serve at different microversions."""
    path = [_in_path(name) for name in PLACEHOLDER.findall(routes[0].path)]
    return [*path, *_in_query(routes)]


def _in_path(name: str) -> Json:
    kind = {"type": "string", "format": "uuid"} if name.endswith("uuid") else {"type": "string", "minLength": 1}
    text = PARAMETERS["consumer_uuid"] if name == "consumer_uuid" else f"The {name} in the path."
    return {"name": name, "in": "path", "required": True, "description": text, "schema": kind}


def _in_query(routes: Iterable[Route]) -> list[Json]:
    shown: dict[str, Json] = {}
    for route in routes:
        for since, rules in _versions(route):
            for name, rule in rules.items():
                shown.setdefault(name, _parameter(name, rule, max(since, Version(*route.since))))
    if any(route.query is KEYS for route in routes):
        shown["in_tree"] = _parameter("in_tree", ValueRule(uuid=True), Version(1, 31))
        return [*shown.values(), _groups()]
    return list(shown.values())


def _versions(route: Route) -> list[tuple[Version, dict[str, ValueRule]]]:
    if isinstance(route.query, Versioned):
        return route.query.items()
    return [(Version(*route.since), route.query or {})]


def _parameter(name: str, rule: ValueRule, since: Version) -> Json:
    schema: Json = {"type": "string"}
    for key, value in (("pattern", rule.pattern), ("minLength", rule.shortest), ("maxLength", rule.longest)):
        if value is not None:
            schema[key] = f"^{value}$" if key == "pattern" else value
    if rule.choices is not None:
        schema["enum"] = list(rule.choices)
    if rule.uuid:
        schema["format"] = "uuid"
    return {
        "name": name,
        "in": "query",
        "required": name == "project_id",
        "description": PARAMETERS.get(name, ""),
        "schema": schema,
        "x-openstack-since": str(since),
    }


def _groups() -> Json:
    patterns = {f"^{key}{SUFFIX}$": {"type": "string"} for key in GROUP_KEYS}
    return {
        "name": "groups",
        "in": "query",
        "required": False,
        "description": GROUPS,
        "style": "form",
        "explode": True,
        "schema": {"type": "object", "patternProperties": patterns, "additionalProperties": False},
        "x-openstack-since": "1.25",
    }

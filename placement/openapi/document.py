"""The OpenAPI document: one operation per method and path, with its parameters, covering all microversions."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from inspect import getdoc
from typing import TypeVar

from placement import __version__
from placement.api.candidate_query import KEYS, SUFFIX
from placement.api.fields import UUID, Field, Json
from placement.api.routes import ROUTES
from placement.api.routing import Route, is_planner_path
from placement.api.versions import MAXIMUM, MINIMUM, Version, Versioned
from placement.auth.strategy import OPEN_PATHS
from placement.openapi.answers import COMPONENTS, ERRORS, answers_to
from placement.openapi.notes import (
    DESCRIPTION,
    FURTHER_FAILURES,
    GROUPS,
    PARAMETERS,
    STATUSES,
    STREAMS,
    SUCCESS,
    USUAL_SUCCESS,
)
from placement.openapi.story import PlayedStep, examples, is_example_of

Value = TypeVar("Value")

PLACEHOLDER = re.compile(r"<(?:[a-z]+:)?(?P<name>[a-z_]+)>")

GROUP_KEYS = ("resources", "required", "member_of", "in_tree")

MICROVERSION: Json = {
    "name": "OpenStack-API-Version",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "default": f"placement {MINIMUM}", "pattern": "^placement (1\\.[0-9]{1,2}|latest)$"},
    "example": f"placement {MAXIMUM}",
}


def document() -> Json:
    """Return the document, with the story's answers as examples."""
    played = examples()
    paths: dict[str, Json] = defaultdict(dict)
    for routes in _operations(ROUTES):
        shown = [example for example in played if is_example_of(example, routes[0])]
        paths[path_of(routes[0])][routes[0].method.lower()] = _operation(routes, shown)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Placement", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"basic": []}],
        "paths": dict(paths),
        "components": {
            "schemas": COMPONENTS,
            "responses": {str(status): _refusal(status) for status in STATUSES if status >= 400},
            "parameters": {"Microversion": MICROVERSION},
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _operations(routes: Iterable[Route]) -> list[list[Route]]:
    """Group routes that differ only in their microversions, oldest first."""
    grouped: dict[tuple[str, str], list[Route]] = defaultdict(list)
    for route in routes:
        grouped[route.path, route.method].append(route)
    return list(grouped.values())


def _operation(routes: Sequence[Route], shown: Sequence[PlayedStep]) -> Json:
    newest = routes[-1]
    served = {"min": str(Version(*routes[0].since)), "max": str(Version(*routes[-1].until))}
    versions = {} if is_planner_path(newest.path) else {"x-openstack-microversions": served}
    header = [] if is_planner_path(newest.path) else [{"$ref": "#/components/parameters/Microversion"}]
    operation: Json = {
        "operationId": f"{newest.method.lower()}{path_of(newest)}",
        "summary": (getdoc(newest.view) or "").partition("\n")[0],
        "tags": [newest.path.split("/")[1] or "discovery"],
        **versions,
        "parameters": [*header, *parameters_of(routes)],
        "responses": {str(status): _answer(newest, status, shown) for status in _statuses(routes)},
    }
    if newest.path in OPEN_PATHS:
        operation["security"] = []
    if any(route.body is not None for route in routes):
        operation["requestBody"] = _body(routes, shown)
    return operation


def body_schemas() -> list[Json]:
    """Return the schema of every body, at every microversion."""
    return [field.schema for route in ROUTES for _since, field in _by_version(route, route.body)]


def _body(routes: Sequence[Route], shown: Sequence[PlayedStep]) -> Json:
    schemas = [(since, field.schema) for route in routes for since, field in _by_version(route, route.body)]
    content: Json = {"schema": _one_or_any(schemas)}
    sent = {example.step.title: example for example in shown if example.step.body is not None}
    if sent:
        content["examples"] = {
            title: {"summary": f"at {example.step.version}", "value": example.step.body}
            for title, example in sent.items()
        }
    every = all(route.body is not None for route in routes)
    return {"required": every, "content": {"application/json": content}}


def _by_version(route: Route, described: Versioned[Value] | Value | None) -> list[tuple[Version, Value]]:
    """Return what is described of a route with the microversion from which each applies."""
    if isinstance(described, Versioned):
        return described.items()
    return [] if described is None else [(Version(*route.since), described)]


def _statuses(routes: Sequence[Route]) -> list[int]:
    """Return the statuses that an operation may answer with."""
    route = routes[0]
    statuses = {*SUCCESS.get((route.method, route.path), USUAL_SUCCESS[route.method]), 400, 503}
    if route.path not in OPEN_PATHS:
        statuses |= {401, 403}
    if "<" in route.path or route.since > (1, 0) or routes[-1].until < MAXIMUM or route.path == "/metrics":
        statuses.add(404)
    if any(served.status_if_unserved == 405 for served in routes):
        statuses.add(405)
    if not is_planner_path(route.path) or any(served.answers_json for served in routes):
        statuses.add(406)
    if route.method != "GET":
        statuses |= {404, 409}
    if any(served.body is not None for served in routes):
        statuses |= {413, 415}
    statuses |= FURTHER_FAILURES.get((route.method, route.path), set())
    return sorted(statuses)


def _answer(route: Route, status: int, shown: Sequence[PlayedStep]) -> Json:
    schemas = answers_to(route.method, route.path, status)
    if not schemas:
        return {"description": _in_words(status)}
    examples = {
        example.step.title: {
            "summary": f"{example.step.method} {example.step.path} at {example.step.version}",
            "value": example.body,
        }
        for example in shown
        if example.status == status and example.body is not None
    }
    schema = _one_or_any(schemas)
    if schema == ERRORS and not examples:
        return {"$ref": f"#/components/responses/{status}"}
    content = {"schema": schema, "examples": examples} if examples else {"schema": schema}
    is_text = route.path == "/metrics" and status == 200
    types = {"text/plain" if is_text else "application/json": content}
    if route.also_answers is not None and status == 200:
        types[route.also_answers] = {"schema": {"type": "string", "description": STREAMS[route.path]}}
    return {"description": _in_words(status), "content": types}


def _refusal(status: int) -> Json:
    return {"description": _in_words(status), "content": {"application/json": {"schema": ERRORS}}}


def _in_words(status: int) -> str:
    return f"{HTTPStatus(status).phrase}. {STATUSES[status]}"


def _one_or_any(schemas: Sequence[tuple[Version, Json]]) -> Json:
    """Return the only schema, or all of them with the microversion from which each applies."""
    if len(schemas) == 1:
        return schemas[0][1]
    return {"anyOf": [{"title": f"from {since} on", **schema} for since, schema in schemas]}


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
        for since, rules in _by_version(route, route.query):
            for name, rule in rules.items():
                shown.setdefault(name, _parameter(name, rule, max(since, Version(*route.since))))
    if any(route.query is KEYS for route in routes):
        shown["in_tree"] = _parameter("in_tree", UUID, Version(1, 31))
        return [*shown.values(), _groups()]
    return list(shown.values())


def _parameter(name: str, rule: Field, since: Version) -> Json:
    return {
        "name": name,
        "in": "query",
        "required": name == "project_id",
        "description": PARAMETERS.get(name, ""),
        "schema": rule.schema,
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

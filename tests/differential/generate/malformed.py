"""Requests with one fault each, derived from valid ones."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from tests.differential.generate.candidates import candidates
from tests.differential.generate.reads import read
from tests.differential.generate.world import World
from tests.differential.generate.writes import write
from tests.differential.requests import NO_BODY, Generation, Request

WRONG_VALUES = (
    *(None, True, False, 0, 1, -1, 1.0, 1.5, 10**20, -(10**20), 2**31, 2**63, 1e40),
    *("", "x", "1", "\x00", "😀", "VCPU", "x" * 300, [], [1], ["x"], {}, {"x": 1}, [[]], [None]),
)
WRONG_BODIES = (
    *(b"", b"{", b"[]", b"null", b'"x"', b"1", b"\xff\xfe", b'{"a": "\xff"}', b"{}", b"{'a': 1}", b'{"a": 1,}'),
    *(b'{"a": NaN}', b"[" * 2000, b'{"name": "a", "name": "b"}', b"{} {}"),
)
WRONG_QUERIES = ("a=%ff", "=", "&&", "a", "resources=%00", "resources=VCPU:1&resources=", "name=a&name=b", "%ff=1")
TYPES = (None, "", "text/plain", "application/xml", "application/json; charset=utf-8", "json")
ACCEPTS = (None, "*/*", "text/html", "text/plain", "application/xml", "text/html,*/*;q=0.1", "application/*", "")
VERSIONS = ("0.9", "1.40", "2.0", "latest", "1", "x", "1.2.3", "1.01", "-1.0", "", "1.", "1.39.0")
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FROB")
Spoil = Callable[[World, Request], Request]
IDENTITIES = ("x", "%00", "%ff", "%C3%BC", "a%2Fb", "123", "..", "%20", "0" * 36, "None")


def malformed(world: World) -> Request:
    """Return a request that is wrong in one way."""
    while True:
        make = world.random.choices((write, read, candidates), (70, 15, 15))[0]
        spoil = world.random.choices(WAYS, (45, 12, 8, 8, 6, 6, 6, 5, 4))[0]
        request = spoil(world, make(world))
        if not _makes_up_a_uuid(request):
            return request


def _makes_up_a_uuid(request: Request) -> bool:
    """Return whether each server may choose the uuid of a new provider, after which the two can never agree again."""
    if request.method != "POST" or request.path.partition("?")[0] != "/resource_providers":
        return False
    return isinstance(request.body, bytes) or (isinstance(request.body, dict) and "uuid" not in request.body)


def _spoil_body(world: World, request: Request) -> Request:
    if request.body is NO_BODY:
        return dataclasses.replace(request, body=world.one(({}, [], None, {"a": 1})))
    return dataclasses.replace(request, body=spoilt(world, copy.deepcopy(request.body)))


def spoilt(world: World, value: Any, wrong: Sequence[Any] = WRONG_VALUES) -> Any:
    """Put a wrong value somewhere into a document, or remove, rename, add or repeat something."""
    changeable = places(value)
    if not changeable or world.chance(5):
        return world.one(wrong)
    container, key = world.one(changeable)
    ways = ["replace", "replace", "remove", "rename", "add"] if isinstance(container, dict) else ["replace", "repeat"]
    way = world.one(ways)
    if way == "replace":
        container[key] = world.one(wrong)
    elif way == "remove":
        del container[key]
    elif way == "rename":
        container[world.one(("", "x", str(key) + "x", str(key).lower(), "\x00", "x" * 300))] = container.pop(key)
    elif way == "add":
        container[world.one(("x", "extra_key", "uuid", "generation", "root_provider_uuid"))] = world.one(wrong)
    else:
        container.append(container[key])
    return value


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return all (container, key) of a document."""
    if isinstance(value, Generation) or not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


def _spoil_bytes(world: World, request: Request) -> Request:
    return dataclasses.replace(request, body=world.one(WRONG_BODIES))


def _spoil_header(name: str, values: Sequence[str | None]) -> Spoil:
    return lambda world, request: dataclasses.replace(request, headers={**request.headers, name: world.one(values)})


def _spoil_version(world: World, request: Request) -> Request:
    if world.chance(20):
        service = world.one(
            ("compute 2.1, placement 1.10", "compute 2.1", "placement", "placement 1.20, placement 1.30")
        )
        return dataclasses.replace(request, version=None, headers={"openstack-api-version": service})
    return dataclasses.replace(request, version=world.one(VERSIONS))


def _spoil_method(world: World, request: Request) -> Request:
    return dataclasses.replace(request, method=world.one(METHODS))


def _spoil_path(world: World, request: Request) -> Request:
    parts = request.path.split("/")
    if world.chance(25):
        return dataclasses.replace(request, path=request.path + world.one(("/", "/x", "//", ";x", "%2F")))
    parts[-1 if len(parts) < 4 or world.chance(50) else 2] = world.one(IDENTITIES)
    return dataclasses.replace(request, path="/".join(parts))


def _spoil_query(world: World, request: Request) -> Request:
    if world.chance(50):
        return dataclasses.replace(request, path=f"{request.path}?{world.one(WRONG_QUERIES)}", query=())
    return dataclasses.replace(request, query=(*request.query, (world.one(("x", "limit", "name", "")), "1")))


def _spoil_identity(world: World, request: Request) -> Request:
    headers: tuple[dict[str, str | None], ...] = (
        {"x-auth-token": None},
        {"x-auth-token": "someone"},
        {"x-auth-token": "someone:project-1", "x-roles": "reader"},
        {"x-auth-token": "someone", "x-roles": "admin"},
        {"x-auth-token": "admin", "openstack-system-scope": "all"},
    )
    return dataclasses.replace(request, headers=world.one(headers))


WAYS: tuple[Spoil, ...] = (
    *(_spoil_body, _spoil_bytes, _spoil_header("content-type", TYPES), _spoil_header("accept", ACCEPTS)),
    *(_spoil_version, _spoil_method, _spoil_path, _spoil_query, _spoil_identity),
)

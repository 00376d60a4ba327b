"""Requests to every route as tests/differential draws them, many of them broken as nobody would by mistake.

Valid requests reach code that random noise never gets to; a broken one is close to a valid one.
"""

import copy
import dataclasses
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

from placement.api.routes import ROUTES
from tests.differential.generate.malformed import malformed, places, spoilt
from tests.differential.generate.world import PROJECTS, World
from tests.differential.requests import NO_BODY, Request
from tests.survival.dialogue import Dialogue

HARD_TEXT = (
    "", " ", "\0", "a" * 300, "a" * 70_000, "9" * 5000, "\N{PILE OF POO}", "\ud800", "%", "%00", "%ff", "../..", "{}",
    "' OR 1=1 --", "in:", "!", "!in:", "!!", ",", ",,", ":", "::", "0", "-1", "1e5", "1_000", "0x1", "NaN", "null",
    "\N{ARABIC-INDIC DIGIT ONE}", "\N{LATIN SMALL LETTER SHARP S}", "CUSTOM_" + "B" * 249, "a\nb", "a\rb", "\u202e",
)  # fmt: skip
RAW_TEXT = ("%", "%z", "%zz", "%0", "%00", "%ff", "%c0%af", "%u0041", "%25", "&&", ";", "=", "+", "#", "\xff", "\0")
"""What is put into query strings as it is."""
HARD_JSON: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 1.0, 1.5, -0.0, 1e-320, 1e308, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30,
    [], [[]], {}, {"": {}}, {"\0": 1}, [None], {"a": {"a": {"a": {}}}}, *HARD_TEXT,
)  # fmt: skip
HARD_BODIES = (
    *(b"", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 5000, b"NaN", b"1" * 5000, b'"\\ud800"', b"{} {}", b"null"),
)
HARD_HEADERS = ("", "a/b", "text/html", "placement 1.999", "placement", "*;q=x", "a" * 9000)
REPEATS = (2, 30, 300, 1100)
BROKEN = 40
"""The percentage of requests that are broken; as many of these are broken once more."""
PLACEHOLDER = re.compile("<(?:[a-z]+:)?([a-z_]+)>")


def draw(dialogue: Dialogue) -> Request:
    """Return the next request about a cloud."""
    world = dialogue.world
    request = world.random.choices((_any_route, malformed), (70, 30))[0](world) if world.chance(40) else dialogue.next()
    while world.chance(BROKEN):
        request = world.one(WAYS)(world, request)
    return request


def _any_route(world: World) -> Request:
    """Return a request to any route, of which only the path is known to be right."""
    route = world.one(ROUTES)
    named = {"uuid": world.provider(), "consumer_uuid": world.one(world.consumers), "name": world.one(world.classes)}
    path = PLACEHOLDER.sub(lambda match: named.get(match[1]) or world.resource_class(), route.path)
    if route.method not in {"PUT", "POST"}:
        return world.request(route.method, path, 39)
    wish = {"project_id": world.one(PROJECTS), "resources": {world.resource_class(): world.one((1, 2**31 - 1))}}
    waiting = {"claimant": wish} if "reclaim" in path else {"pending": [{**wish, "count": world.one((1, 10_000))}]}
    return world.request(route.method, path, world.minor(), waiting if "fair-share" in path else {"name": path})


def _hard_body(world: World, request: Request) -> Request:
    if request.body is NO_BODY or isinstance(request.body, bytes) or world.chance(10):
        return dataclasses.replace(request, body=world.one(HARD_BODIES))
    body = spoilt(world, copy.deepcopy(request.body), HARD_JSON)
    lists = [(container, key) for container, key in places(body) if isinstance(container[key], list)]
    if lists and world.chance(20):
        container, key = world.one(lists)
        container[key] = container[key][:3] * world.one(REPEATS)
    return dataclasses.replace(request, body=body)


def _hard_query(world: World, request: Request) -> Request:
    pairs = [*request.query] or [("name", "x")]
    index = world.random.randrange(len(pairs))
    key, value = pairs[index]
    times = world.one(REPEATS)
    pairs[index : index + 1] = world.one(
        (
            [(key, _hard_text(world, value))],
            [(_hard_text(world, key), value)],
            [(key, value)] * times,
            [(f"{key}_{number}", value) for number in range(times)],
            [],
        )
    )
    encoded = [[quote_plus(text.encode("utf-8", "surrogatepass")) for text in pair] for pair in pairs]
    query = "&".join(map("=".join, encoded))
    if world.chance(20):
        cut = world.random.randint(0, len(query))
        query = query[:cut] + world.one(RAW_TEXT) + query[cut:]
    return dataclasses.replace(request, path=f"{request.path.partition('?')[0]}?{query}", query=())


def _hard_text(world: World, text: str) -> str:
    cut, hard = world.random.randint(0, len(text)), world.one(HARD_TEXT)
    repeated = world.one((",", ":", "", ",!")).join([text[:100]] * world.one(REPEATS))
    return world.one((hard, text[:cut], text[:cut] + hard + text[cut:], repeated))


def _hard_path(world: World, request: Request) -> Request:
    path, mark, query = request.path.partition("?")
    parts = path.split("/")
    parts[-1] = quote(world.one(HARD_TEXT).encode("utf-8", "replace"), safe="")
    return dataclasses.replace(request, path="/".join(parts) + mark + query)


def _hard_header(world: World, request: Request) -> Request:
    name = world.one(("accept", "content-type", "openstack-api-version", "x-openstack-request-id"))
    changed = {"x-roles": "reader"} if world.chance(30) else {name: world.one(HARD_HEADERS)}
    return dataclasses.replace(request, headers={**request.headers, **changed})


WAYS: tuple[Callable[[World, Request], Request], ...] = (
    *(_hard_body, _hard_body, _hard_query, _hard_query, _hard_path, _hard_header),
)

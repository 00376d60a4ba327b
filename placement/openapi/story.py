"""A plausible sequence of requests that covers every operation, replayed against a server in this process.

The answers become the examples of the API reference.
"""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from placement.api.routing import Route
from placement.app import create_app
from placement.settings import AccessLogSettings, DatabaseSettings, Settings

HOST = "9c2e4f0a-59d4-4c38-a1a8-6f8b1f0f3a01"
NUMA = "4f1f7a52-6c0d-4f39-9d0e-0a5d3c6b7e02"
OTHER = "d0c7b0de-0f2e-4b52-8b5c-2f4f0c9f1b03"
AGGREGATE = "7f0a3c1e-2b6d-4f88-8a2f-5f0b0e9d6c04"
SERVER = "5f0b1f8e-3c5d-4c0e-9f1a-2f6f6e2f7a02"
VOLUME = "1c5e7b1a-8b57-4d0f-8d43-9c7e6a1f2b05"


@dataclass(frozen=True, slots=True)
class Step:
    """One request, the example of the operation that it reaches."""

    title: str
    method: str
    path: str
    body: Any = None
    version: str = "1.39"


def _claim(provider: str, amount: int, generation: int | None) -> dict[str, Any]:
    return {
        "allocations": {provider: {"resources": {"VCPU": amount}}},
        "project_id": "demo",
        "user_id": "alice",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


_PROVIDER = f"/resource_providers/{HOST}"
_TREE = f"/planner/v1/trees/{HOST}"

_WAITING = [
    {"project_id": "demo", "resources": {"VCPU": 4}, "count": 3},
    {"project_id": "other", "resources": {"VCPU": 2}, "count": 9},
]

STORY = (
    Step("The supported microversions", "GET", "/", version="1.0"),
    Step("A running process", "GET", "/healthcheck", version="1.0"),
    Step("A server that is ready", "GET", "/readycheck", version="1.0"),
    Step("A host", "POST", "/resource_providers", {"name": "compute1", "uuid": HOST}),
    Step("A host, at an old microversion", "POST", "/resource_providers", {"name": "old", "uuid": OTHER}, "1.0"),
    Step(
        "A NUMA node in the host",
        "POST",
        "/resource_providers",
        {"name": "compute1-numa0", "uuid": NUMA, "parent_provider_uuid": HOST},
    ),
    Step("A name that is taken", "POST", "/resource_providers", {"name": "compute1"}),
    Step("A tree", "GET", f"/resource_providers?in_tree={HOST}"),
    Step("One provider", "GET", _PROVIDER),
    Step("A provider that does not exist", "GET", f"/resource_providers/{SERVER}"),
    Step("Renaming a provider", "PUT", f"/resource_providers/{OTHER}", {"name": "compute2"}),
    Step(
        "All inventories of a host",
        "PUT",
        f"{_PROVIDER}/inventories",
        {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8, "allocation_ratio": 4.0}}},
    ),
    Step(
        "An outdated generation",
        "PUT",
        f"{_PROVIDER}/inventories",
        {"resource_provider_generation": 0, "inventories": {}},
    ),
    Step("An additional class", "POST", f"{_PROVIDER}/inventories", {"resource_class": "DISK_GB", "total": 100}),
    Step(
        "More inventory of a class",
        "PUT",
        f"{_PROVIDER}/inventories/DISK_GB",
        {"resource_provider_generation": 2, "total": 200, "reserved": 10},
    ),
    Step("A host's inventories", "GET", f"{_PROVIDER}/inventories"),
    Step("A host's inventory of one class", "GET", f"{_PROVIDER}/inventories/DISK_GB"),
    Step("Deleting an inventory", "DELETE", f"{_PROVIDER}/inventories/DISK_GB"),
    Step(
        "Adding a host to an aggregate",
        "PUT",
        f"{_PROVIDER}/aggregates",
        {"aggregates": [AGGREGATE], "resource_provider_generation": 4},
    ),
    Step("An aggregate, at an old microversion", "PUT", f"/resource_providers/{OTHER}/aggregates", [AGGREGATE], "1.1"),
    Step("The aggregates of a host", "GET", f"{_PROVIDER}/aggregates"),
    Step("A trait of your own", "PUT", "/traits/CUSTOM_FAST"),
    Step("A trait that exists", "GET", "/traits/CUSTOM_FAST"),
    Step("Traits of your own", "GET", "/traits?name=startswith:CUSTOM_"),
    Step(
        "Replacing the traits of a host",
        "PUT",
        f"{_PROVIDER}/traits",
        {"traits": ["CUSTOM_FAST", "HW_CPU_X86_AVX2"], "resource_provider_generation": 5},
    ),
    Step("The traits of a host", "GET", f"{_PROVIDER}/traits"),
    Step("A resource class of your own", "POST", "/resource_classes", {"name": "CUSTOM_LICENSE"}),
    Step("A resource class, created if necessary", "PUT", "/resource_classes/CUSTOM_SEAT"),
    Step(
        "Renaming a resource class, at an old microversion",
        "PUT",
        "/resource_classes/CUSTOM_SEAT",
        {"name": "CUSTOM_DESK"},
        "1.2",
    ),
    Step("One resource class", "GET", "/resource_classes/CUSTOM_LICENSE"),
    Step("Deleting a resource class", "DELETE", "/resource_classes/CUSTOM_LICENSE"),
    Step("Where can this go?", "GET", "/allocation_candidates?resources=VCPU:2&required=CUSTOM_FAST&limit=1"),
    Step("Why can this go nowhere?", "GET", "/planner/v1/explain?resources=VCPU:2&required=HW_CPU_X86_SSE2"),
    Step("A plan, in JSON", "POST", "/planner/v1/candidates", {"groups": {"": {"resources": {"VCPU": 2}}}, "limit": 1}),
    Step(
        "The scores of a candidate",
        "POST",
        "/planner/v1/scores",
        {"allocation_requests": [{"allocations": {HOST: {"resources": {"VCPU": 2}}}}]},
    ),
    Step(
        "A claim without room",
        "POST",
        "/planner/v1/claims",
        {
            "groups": {"": {"resources": {"VCPU": 1000}}},
            "consumer": {"uuid": SERVER, "project_id": "demo", "user_id": "demo", "consumer_type": "INSTANCE"},
        },
    ),
    Step("How many more fit", "GET", "/planner/v1/headroom?resources=VCPU:4"),
    Step(
        "How many more of two flavors fit, if there were two more hosts",
        "POST",
        "/planner/v1/headroom",
        {
            "requests": {"small": "resources=VCPU:2", "large": {"groups": {"": {"resources": {"VCPU": 16}}}}},
            "per": "tree",
            "with": [{"like": HOST, "count": 2}],
        },
    ),
    Step("Everything about a tree", "GET", f"/planner/v1/inventory?in_tree={HOST}"),
    Step("Profiles and levels", "GET", "/planner/v1/profiles"),
    Step("Who changed what", "GET", f"/planner/v1/journal?provider={HOST}&limit=2"),
    Step("An invalid request", "GET", "/allocation_candidates?resources=VCPU"),
    Step("A claim", "PUT", f"/allocations/{SERVER}", _claim(HOST, 2, None)),
    Step("A claim that does not fit", "PUT", f"/allocations/{VOLUME}", _claim(HOST, 100, None)),
    Step("Two claims or none", "POST", "/allocations", {VOLUME: _claim(HOST, 1, None), SERVER: _claim(HOST, 4, 1)}),
    Step("The allocations of a consumer", "GET", f"/allocations/{SERVER}"),
    Step("The allocations of a host", "GET", f"{_PROVIDER}/allocations"),
    Step("The usage of a host", "GET", f"{_PROVIDER}/usages"),
    Step("The usage of a project, by type", "GET", "/usages?project_id=demo"),
    Step("The usage of a project, at an old microversion", "GET", "/usages?project_id=demo", version="1.9"),
    Step("Who holds what nobody knows", "POST", "/planner/v1/audit", {"known_consumers": [SERVER]}),
    Step("The shares of all projects", "GET", "/planner/v1/fair-share"),
    Step("Who is next, and why", "POST", "/planner/v1/fair-share/order", {"pending": _WAITING}),
    Step("What each would get", "POST", "/planner/v1/fair-share/fill", {"pending": _WAITING}),
    Step(
        "What should be given back for a claim",
        "POST",
        "/planner/v1/fair-share/reclaim",
        {"claimant": {"project_id": "other", "resources": {"VCPU": 28}}, "values": {SERVER: 2, VOLUME: 1}},
    ),
    Step("A provider that is in use", "DELETE", _PROVIDER),
    Step("The trees of a cloud", "GET", "/planner/v1/trees?limit=1"),
    Step("Who holds something of a host, and since when", "GET", _TREE),
    Step("What would have to leave a host, and where to", "POST", f"{_TREE}/drain", {"dry_run": True}),
    Step("Keeping new consumers off a host", "POST", f"{_TREE}/drain", {"by": "trait"}),
    Step("Putting a host back into service", "POST", f"{_TREE}/enable"),
    Step("Removing a host that somebody still uses", "DELETE", _TREE),
    Step("Removing a host", "DELETE", f"/planner/v1/trees/{OTHER}"),
    Step(
        "Moving inventory to a NUMA node, with its allocations",
        "POST",
        "/reshaper",
        {
            "inventories": {
                HOST: {"resource_provider_generation": 8, "inventories": {}},
                NUMA: {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 16}}},
            },
            "allocations": {SERVER: _claim(NUMA, 4, 2), VOLUME: _claim(NUMA, 1, 1)},
        },
    ),
    Step("A consumer gives everything back", "DELETE", f"/allocations/{SERVER}"),
    Step("Another consumer gives everything back", "DELETE", f"/allocations/{VOLUME}"),
    Step("Removing all traits", "DELETE", f"{_PROVIDER}/traits"),
    Step("Deleting a trait", "DELETE", "/traits/CUSTOM_FAST"),
    Step("Deleting all inventories", "DELETE", f"/resource_providers/{NUMA}/inventories"),
    Step("Deleting a provider", "DELETE", f"/resource_providers/{NUMA}"),
    Step("The resources of the planner API", "GET", "/planner/v1"),
)


REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SAME_ID = "req-00000000-0000-0000-0000-000000000000"
TIME, SAME_TIME = re.compile(r'"(time|since)":"[^"]+"'), r'"\1":"2026-11-22T12:00:00.000Z"'
AGE, SAME_AGE = re.compile(r'"age_s":[0-9.e-]+'), '"age_s":0.5'


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """A step and its result; ``route`` is the path as in the route."""

    step: Step
    route: str
    status: int
    body: Any


def examples() -> list[PlayedStep]:
    """Replay the story on a database of its own and return the results."""
    with tempfile.TemporaryDirectory() as directory:
        database = DatabaseSettings(connection=f"sqlite:///{Path(directory) / 'story.sqlite'}", sync_on_startup=True)
        settings = Settings(
            database=database,
            auth_strategy="noauth2",
            auth_is_implicit=True,
            access_log=AccessLogSettings(enabled=False),
        )
        app = create_app(settings)
        try:
            return played_on(app)
        finally:
            app.extensions["placement"].database.dispose()


def played_on(app: Any, steps: Sequence[Step] = STORY) -> list[PlayedStep]:
    """Replay the story on an application whose database has no providers yet."""
    return [_played(app, step) for step in steps]


def _played(app: Any, step: Step) -> PlayedStep:
    headers = {
        "x-auth-token": "admin",
        "x-roles": "admin,service",
        "accept": "application/json",
        "openstack-api-version": f"placement {step.version}",
    }
    sent = {} if step.body is None else {"json": step.body}
    answer = app.test_client().open(step.path, method=step.method, headers=headers, **sent)
    endpoint, _ = app.url_map.bind("localhost").match(step.path.partition("?")[0])
    body = TIME.sub(SAME_TIME, AGE.sub(SAME_AGE, REQUEST_ID.sub(SAME_ID, answer.text)))
    answer.close()
    return PlayedStep(step, str(endpoint), answer.status_code, _parsed(body))


def _parsed(text: str) -> Any:
    return orjson.loads(text) if text else None


def is_example_of(example: PlayedStep, route: Route) -> bool:
    """Tell whether an example belongs to a route's path and method."""
    return (example.step.method, example.route) == (route.method, route.path)

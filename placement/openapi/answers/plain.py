"""The answers of the Placement API, by microversion."""

from typing import Any
from uuid import UUID

from placement.api.fields import Json
from placement.api.resource_providers import LINKS, PARENTS
from placement.api.versions import MINIMUM, Version, Versioned
from placement.openapi.shapes import Ready, all_are, by_class, by_name, by_uuid, one_of, or_null, shape, shared

AMOUNTS = by_class(int)
_LINK = {"rel": str, "href": str}
_GENERATION = {"resource_provider_generation": int}

_INVENTORY = all_are(int, "total", "reserved", "min_unit", "max_unit", "step_size") | {"allocation_ratio": float}
_TREE = {"parent_provider_uuid": or_null(UUID), "root_provider_uuid": UUID}
_TRAITS = {"traits": [str]}
_ROOM = by_class({"capacity": Ready(type="integer", minimum=-(2**63)), "used": int})


def always(example: Any) -> Versioned[Json]:
    """Return the schema of an answer that is the same at every microversion."""
    return Versioned({MINIMUM: shape(example)})


def _provider(version: Version) -> dict[str, Any]:
    shown = {
        "uuid": UUID,
        "name": str,
        "generation": int,
        "links": [{"rel": one_of(["self", *LINKS.at(version)]), "href": str}],
    }
    return shown | _TREE if version.minor >= PARENTS else shown


_NAMES = {since: f"Provider-{since}" for since in sorted({*dict(LINKS.items()), Version(1, PARENTS)})}
_PROVIDER: Versioned[Json] = Versioned({since: shared(name) for since, name in _NAMES.items()})
_PROVIDER_LIST: Versioned[Json] = Versioned(
    {since: shape({"resource_providers": [shared(name)]}) for since, name in _NAMES.items()}
)

COMPONENTS: dict[str, Any] = {
    **{name: _provider(since) for since, name in _NAMES.items()},
    "Inventory": _INVENTORY,
    "ProviderInventory": _INVENTORY | _GENERATION,
    "ProviderInventories": _GENERATION | {"inventories": by_class(shared("Inventory"))},
    "ProviderTraits": _TRAITS | _GENERATION,
    "ResourceClass": {"name": str, "links": [_LINK]},
    "Taken": by_uuid({"resources": AMOUNTS}),
    "Mappings": by_name([UUID]),
    "ProviderSummary": {"resources": _ROOM} | _TRAITS | _TREE,
}
"""Schemas that several answers share."""


def _candidates(request: Any, summary: Any) -> Ready:
    return shape({"allocation_requests": [request], "provider_summaries": by_uuid(summary)})


_OLD_TAKEN = {"resource_provider": {"uuid": UUID}, "resources": AMOUNTS}
_REQUEST = {"allocations": shared("Taken")}
_CANDIDATES: Versioned[Json] = Versioned(
    {
        (1, 10): _candidates({"allocations": [_OLD_TAKEN]}, {"resources": _ROOM}),
        (1, 12): _candidates(_REQUEST, {"resources": _ROOM}),
        (1, 17): _candidates(_REQUEST, {"resources": _ROOM} | _TRAITS),
        (1, 29): _candidates(_REQUEST, shared("ProviderSummary")),
        (1, 34): _candidates(_REQUEST | {"mappings": shared("Mappings")}, shared("ProviderSummary")),
    }
)


def _held(owner: dict[str, Any]) -> Ready:
    """Return the schema of a consumer's allocations; a consumer that holds nothing has no owner either."""
    shares = by_uuid({"generation": int, "resources": AMOUNTS})
    held = shape({"allocations": shares, **owner})
    return Ready(anyOf=[held, shape({"allocations": Ready(type="object", maxProperties=0)})]) if owner else held


_OWNER = {"project_id": str, "user_id": str}
_OF_CONSUMER: Versioned[Json] = Versioned(
    {
        (1, 0): _held({}),
        (1, 12): _held(_OWNER),
        (1, 28): _held(_OWNER | {"consumer_generation": int}),
        (1, 38): _held(_OWNER | {"consumer_generation": int, "consumer_type": str}),
    }
)
_OF_PROVIDER: Versioned[Json] = Versioned(
    {
        (1, 0): shape({"allocations": by_uuid({"resources": AMOUNTS})} | _GENERATION),
        (1, 28): shape({"allocations": by_uuid({"resources": AMOUNTS, "consumer_generation": int})} | _GENERATION),
    }
)
_AGGREGATES: Versioned[Json] = Versioned(
    {(1, 1): shape({"aggregates": [str]}), (1, 19): shape({"aggregates": [str]} | _GENERATION)}
)
_USAGES: Versioned[Json] = Versioned(
    {
        (1, 9): shape({"usages": AMOUNTS}),
        (1, 38): shape(
            {"usages": by_name(Ready(shape({"consumer_count": int}) | {"additionalProperties": shape(int)}))}
        ),
    }
)
_DISCOVERY = {"versions": [{"id": str, "min_version": str, "max_version": str, "status": str, "links": [_LINK]}]}

_PROVIDER_PATH = "/resource_providers/<uuid>"
ANSWERS: dict[tuple[str, str, int], Versioned[Json]] = {
    ("GET", "/", 200): always(_DISCOVERY),
    ("GET", "/healthcheck", 200): always({"status": one_of(["ok"])}),
    ("GET", "/readycheck", 200): always(
        {
            "status": one_of(["ready"]),
            "usage": one_of(["kept", "summed"]),
            "journal": one_of(["written", "not written"]),
            "writes?": str,
        }
    ),
    ("GET", "/readycheck", 503): always({"status": one_of(["not ready"]), "reason": str}),
    ("GET", "/metrics", 200): always(str),
    ("GET", "/allocation_candidates", 200): _CANDIDATES,
    ("GET", "/resource_providers", 200): _PROVIDER_LIST,
    ("POST", "/resource_providers", 200): Versioned({(1, 20): _PROVIDER.at(Version(1, 20))}),
    ("GET", _PROVIDER_PATH, 200): _PROVIDER,
    ("PUT", _PROVIDER_PATH, 200): _PROVIDER,
    ("GET", f"{_PROVIDER_PATH}/inventories", 200): always(shared("ProviderInventories")),
    ("PUT", f"{_PROVIDER_PATH}/inventories", 200): always(shared("ProviderInventories")),
    ("POST", f"{_PROVIDER_PATH}/inventories", 201): always(shared("ProviderInventory")),
    ("GET", f"{_PROVIDER_PATH}/inventories/<resource_class>", 200): always(shared("ProviderInventory")),
    ("PUT", f"{_PROVIDER_PATH}/inventories/<resource_class>", 200): always(shared("ProviderInventory")),
    ("GET", f"{_PROVIDER_PATH}/aggregates", 200): _AGGREGATES,
    ("PUT", f"{_PROVIDER_PATH}/aggregates", 200): _AGGREGATES,
    ("GET", "/traits", 200): always(_TRAITS),
    ("GET", f"{_PROVIDER_PATH}/traits", 200): always(shared("ProviderTraits")),
    ("PUT", f"{_PROVIDER_PATH}/traits", 200): always(shared("ProviderTraits")),
    ("GET", "/resource_classes", 200): always({"resource_classes": [shared("ResourceClass")]}),
    ("GET", "/resource_classes/<name>", 200): always(shared("ResourceClass")),
    ("PUT", "/resource_classes/<name>", 200): always(shared("ResourceClass")),
    ("GET", "/allocations/<consumer_uuid>", 200): _OF_CONSUMER,
    ("GET", f"{_PROVIDER_PATH}/allocations", 200): _OF_PROVIDER,
    ("GET", f"{_PROVIDER_PATH}/usages", 200): always(_GENERATION | {"usages": AMOUNTS}),
    ("GET", "/usages", 200): _USAGES,
}
"""Method, the route's path, status -> the body. Answers that are missing here have no body or are errors."""

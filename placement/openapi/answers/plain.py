"""The answers of the Placement API, by microversion."""

from placement.api.resource_providers import LINKS, PARENTS
from placement.api.versions import MINIMUM, Version, Versioned
from placement.openapi.shapes import (
    COUNT,
    NUMBER,
    TEXT,
    UUID,
    Json,
    array,
    by_class,
    by_name,
    by_uuid,
    one_of,
    or_null,
    record,
    shared,
)

AMOUNTS = by_class(COUNT)
TAKEN = record({"resources": AMOUNTS})
LINK = {"rel": TEXT, "href": TEXT}
GENERATION = {"resource_provider_generation": COUNT}

INVENTORY = {
    "total": COUNT,
    "reserved": COUNT,
    "min_unit": COUNT,
    "max_unit": COUNT,
    "step_size": COUNT,
    "allocation_ratio": NUMBER,
}
ROOM = by_class(record({"capacity": COUNT | {"minimum": -(2**63)}, "used": COUNT}))


def always(schema: Json) -> Versioned[Json]:
    """Return a schema that applies at every microversion."""
    return Versioned({MINIMUM: schema})


def _providers() -> dict[Version, Json]:
    """Return the schema of a provider for each microversion that adds something to it."""
    changes = sorted({since for since, _ in LINKS.items()} | {Version(1, PARENTS)})
    return {since: _provider(since) for since in changes}


def _provider(version: Version) -> Json:
    shown = {
        "uuid": UUID,
        "name": TEXT,
        "generation": COUNT,
        "links": array(record({"rel": one_of(["self", *LINKS.at(version)]), "href": TEXT})),
    }
    tree = {"parent_provider_uuid": or_null(UUID), "root_provider_uuid": UUID}
    return record(shown | tree if version.minor >= PARENTS else shown)


_PROVIDERS = _providers()
_NAMES = {since: f"Provider-{since}" for since in _PROVIDERS}
_PROVIDER = Versioned({since: shared(name) for since, name in _NAMES.items()})
_PROVIDER_LIST = Versioned(
    {since: record({"resource_providers": array(shared(name))}) for since, name in _NAMES.items()}
)

_TREE = {"parent_provider_uuid": or_null(UUID), "root_provider_uuid": UUID}
_TRAITS = {"traits": array(TEXT)}

COMPONENTS: dict[str, Json] = {
    **{_NAMES[since]: schema for since, schema in _PROVIDERS.items()},
    "Inventory": record(INVENTORY),
    "ProviderInventory": record(INVENTORY | GENERATION),
    "ProviderInventories": record(GENERATION | {"inventories": by_class(shared("Inventory"))}),
    "ProviderTraits": record(_TRAITS | GENERATION),
    "ResourceClass": record({"name": TEXT, "links": array(record(LINK))}),
    "Taken": by_uuid(TAKEN),
    "Mappings": by_name(array(UUID)),
    "ProviderSummary": record({"resources": ROOM} | _TRAITS | _TREE),
}
"""Schemas that several answers share."""


def _candidates(request: Json, summary: Json) -> Json:
    return record({"allocation_requests": array(request), "provider_summaries": by_uuid(summary)})


_OLD_TAKEN = record({"resource_provider": record({"uuid": UUID}), "resources": AMOUNTS})
_REQUEST = record({"allocations": shared("Taken")})
_MAPPED = record({"allocations": shared("Taken"), "mappings": shared("Mappings")})
_ROOM = record({"resources": ROOM})

CANDIDATES: Versioned[Json] = Versioned(
    {
        (1, 10): _candidates(record({"allocations": array(_OLD_TAKEN)}), _ROOM),
        (1, 12): _candidates(_REQUEST, _ROOM),
        (1, 17): _candidates(_REQUEST, record({"resources": ROOM} | _TRAITS)),
        (1, 29): _candidates(_REQUEST, shared("ProviderSummary")),
        (1, 34): _candidates(_MAPPED, shared("ProviderSummary")),
    }
)


def _held(owner: dict[str, Json]) -> Json:
    """Return the schema of a consumer's allocations; a consumer that holds nothing has no owner either."""
    shares = by_uuid(record({"generation": COUNT, "resources": AMOUNTS}))
    nothing = record({"allocations": {"type": "object", "maxProperties": 0}})
    return {"anyOf": [record({"allocations": shares, **owner}), nothing]} if owner else record({"allocations": shares})


_OWNER = {"project_id": TEXT, "user_id": TEXT}
_OF_CONSUMER: Versioned[Json] = Versioned(
    {
        (1, 0): _held({}),
        (1, 12): _held(_OWNER),
        (1, 28): _held(_OWNER | {"consumer_generation": COUNT}),
        (1, 38): _held(_OWNER | {"consumer_generation": COUNT, "consumer_type": TEXT}),
    }
)
_OF_PROVIDER: Versioned[Json] = Versioned(
    {
        (1, 0): record({"allocations": by_uuid(TAKEN)} | GENERATION),
        (1, 28): record(
            {"allocations": by_uuid(record({"resources": AMOUNTS, "consumer_generation": COUNT}))} | GENERATION
        ),
    }
)
_AGGREGATES: Versioned[Json] = Versioned(
    {(1, 1): record({"aggregates": array(TEXT)}), (1, 19): record({"aggregates": array(TEXT)} | GENERATION)}
)
_USAGES: Versioned[Json] = Versioned(
    {
        (1, 9): record({"usages": AMOUNTS}),
        (1, 38): record(
            {
                "usages": by_name(
                    {
                        "type": "object",
                        "required": ["consumer_count"],
                        "properties": {"consumer_count": COUNT},
                        "additionalProperties": COUNT,
                    }
                )
            }
        ),
    }
)
_DISCOVERY = record(
    {
        "versions": array(
            record({"id": TEXT, "min_version": TEXT, "max_version": TEXT, "status": TEXT, "links": array(record(LINK))})
        )
    }
)

_ONE = "/resource_providers/<uuid>"
ANSWERS: dict[tuple[str, str, int], Versioned[Json]] = {
    ("GET", "/", 200): always(_DISCOVERY),
    ("GET", "/healthcheck", 200): always(record({"status": one_of(["ok"])})),
    ("GET", "/readycheck", 200): always(
        record(
            {
                "status": one_of(["ready"]),
                "usage": one_of(["kept", "summed"]),
                "journal": one_of(["written", "not written"]),
            },
            {"writes": TEXT},
        )
    ),
    ("GET", "/readycheck", 503): always(record({"status": one_of(["not ready"]), "reason": TEXT})),
    ("GET", "/metrics", 200): always(TEXT),
    ("GET", "/allocation_candidates", 200): CANDIDATES,
    ("GET", "/resource_providers", 200): _PROVIDER_LIST,
    ("POST", "/resource_providers", 200): Versioned({(1, 20): _PROVIDER.at(Version(1, 20))}),
    ("GET", _ONE, 200): _PROVIDER,
    ("PUT", _ONE, 200): _PROVIDER,
    ("GET", f"{_ONE}/inventories", 200): always(shared("ProviderInventories")),
    ("PUT", f"{_ONE}/inventories", 200): always(shared("ProviderInventories")),
    ("POST", f"{_ONE}/inventories", 201): always(shared("ProviderInventory")),
    ("GET", f"{_ONE}/inventories/<name>", 200): always(shared("ProviderInventory")),
    ("PUT", f"{_ONE}/inventories/<name>", 200): always(shared("ProviderInventory")),
    ("GET", f"{_ONE}/aggregates", 200): _AGGREGATES,
    ("PUT", f"{_ONE}/aggregates", 200): _AGGREGATES,
    ("GET", "/traits", 200): always(record(_TRAITS)),
    ("GET", f"{_ONE}/traits", 200): always(shared("ProviderTraits")),
    ("PUT", f"{_ONE}/traits", 200): always(shared("ProviderTraits")),
    ("GET", "/resource_classes", 200): always(record({"resource_classes": array(shared("ResourceClass"))})),
    ("GET", "/resource_classes/<name>", 200): always(shared("ResourceClass")),
    ("PUT", "/resource_classes/<name>", 200): always(shared("ResourceClass")),
    ("GET", "/allocations/<consumer_uuid>", 200): _OF_CONSUMER,
    ("GET", f"{_ONE}/allocations", 200): _OF_PROVIDER,
    ("GET", f"{_ONE}/usages", 200): always(record(GENERATION | {"usages": AMOUNTS})),
    ("GET", "/usages", 200): _USAGES,
}
"""Method, the route's path, status -> the body. Answers that are missing here have no body or are errors."""

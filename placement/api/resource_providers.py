"""/resource_providers: the nodes of the provider trees, and what the routes below one have in common."""

from typing import Any
from uuid import uuid4

from flask import Response

from placement.api.call import Call
from placement.api.fields import UUID, Field, Object, Uuid, text
from placement.api.query import ANY, LAST_UUID, Query, parse_member_of, parse_required, parse_resources
from placement.api.routing import Route
from placement.api.versions import Version, Versioned
from placement.domain.inventory import Move, Provider, ProviderFilter
from placement.domain.names import canonical_uuid
from placement.errors import Invalid
from placement.services import providers as service
from placement.services.providers import provider
from placement.store.provider_list import ProviderRow

_OLDEST = {"name": ANY, "uuid": LAST_UUID}
FILTERS = Versioned(
    {
        (1, 0): _OLDEST,
        (1, 3): _OLDEST | {"member_of": ANY},
        (1, 4): _OLDEST | {"member_of": ANY, "resources": ANY},
        (1, 14): _OLDEST | {"member_of": ANY, "resources": ANY, "in_tree": LAST_UUID},
        (1, 18): _OLDEST | {"member_of": ANY, "resources": ANY, "in_tree": LAST_UUID, "required": ANY},
    }
)

ONE_PROVIDER = "/resource_providers/<uuid>"


def provider_filter(query: Query, version: Version) -> ProviderFilter:
    """Return the filter that an already checked query string describes, or Invalid."""
    resources = query.last("resources")
    member_of, forbidden_aggregates = parse_member_of(query.every("member_of"), version)
    required, forbidden = parse_required(query.every("required"), version)
    return ProviderFilter(
        # As in the reference, an empty name does not filter.
        name=query.last("name") or None,
        uuid=query.last("uuid"),
        in_tree=query.last("in_tree"),
        resources={} if resources is None else parse_resources(resources),
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
    )


def path_of(uuid: str, *below: str) -> str:
    """Return the path of a provider, or of something below it."""
    return "/".join(("/resource_providers", uuid, *below))


def body_for(call: Call, uuid: str, schemas: Versioned[Field] | Field) -> Any:
    """Return the validated body of a write to a provider; a missing provider is reported before an invalid body."""
    try:
        return call.body(schemas)
    except Invalid:
        provider(call.database, uuid)
        raise


RULE = "placement:resource_providers:"

PARENTS = 14
"""The minor version from which providers have parents."""
ANY_MOVE = 37
"""The minor version from which a provider may change or leave its parent."""


_NAME = {"name": text(longest=200)}
_PARENT = {"parent_provider_uuid?": Uuid(nullable=True)}
CHANGE = Versioned({(1, 0): Object(_NAME), (1, PARENTS): Object(_NAME | _PARENT)})
NEW = Versioned({(1, 0): Object(_NAME | {"uuid?": UUID}), (1, PARENTS): Object(_NAME | _PARENT | {"uuid?": UUID})})

LINKS: Versioned[tuple[str, ...]] = Versioned(
    {
        (1, 0): ("inventories", "usages"),
        (1, 1): ("inventories", "usages", "aggregates"),
        (1, 6): ("inventories", "usages", "aggregates", "traits"),
        (1, 11): ("inventories", "usages", "aggregates", "traits", "allocations"),
    }
)


def list_providers(call: Call) -> Response:
    """List the providers that match the query."""
    call.query.check(FILTERS.at(call.version))
    listed = service.providers(call.database, provider_filter(call.query, call.version))
    return call.json({"resource_providers": _all_shown(call, listed.rows)}, last_modified=listed.modified)


def _all_shown(call: Call, rows: list[ProviderRow]) -> list[dict[str, Any]]:
    """Return providers as JSON objects. There may be thousands, so the loop calls no function per provider."""
    base = call.link("/resource_providers/")
    ends = [(rel, f"/{rel}") for rel in LINKS.at(call.version)]
    shown: list[dict[str, Any]] = [
        {
            "uuid": uuid,
            "name": name,
            "generation": generation,
            "links": [
                {"rel": "self", "href": base + uuid},
                *[{"rel": rel, "href": base + uuid + end} for rel, end in ends],
            ],
        }
        for uuid, name, generation, _, _ in rows
    ]
    if call.since(PARENTS):
        for provider, (_, _, _, parent, root) in zip(shown, rows, strict=True):
            provider["parent_provider_uuid"] = parent
            provider["root_provider_uuid"] = root
    return shown


def _answer(call: Call, provider: Provider) -> Response:
    row = (provider.uuid, provider.name, provider.generation, provider.parent_uuid, provider.root_uuid)
    return call.json(_all_shown(call, [row])[0], last_modified=provider.modified)


def show(call: Call, uuid: str) -> Response:
    """Return a provider."""
    return _answer(call, service.provider(call.database, uuid))


def create(call: Call) -> Response:
    """Create a provider; from 1.20 on, return it."""
    body = call.body(NEW)
    made = service.create_provider(
        call.database,
        uuid=canonical_uuid(body["uuid"]) if "uuid" in body else str(uuid4()),
        name=body["name"],
        parent_uuid=body.get("parent_provider_uuid"),
    )
    if not call.since(20):
        return call.empty(201, location=path_of(made.uuid))
    response = _answer(call, made)
    call.locate(response, path_of(made.uuid))
    return response


def update(call: Call, uuid: str) -> Response:
    """Rename a provider, and move it if the body names a parent."""
    body = body_for(call, uuid, CHANGE)
    move = None
    if "parent_provider_uuid" in body:
        move = Move(body["parent_provider_uuid"], from_anywhere=call.since(ANY_MOVE))
    return _answer(call, service.update_provider(call.database, uuid, name=body["name"], move=move))


def delete(call: Call, uuid: str) -> Response:
    """Delete a provider."""
    service.delete_provider(call.database, uuid)
    return call.empty()


ALL = "/resource_providers"
ROUTES = (
    Route("GET", ALL, list_providers, rule=RULE + "list", answers_json=True, query=FILTERS),
    Route("POST", ALL, create, rule=RULE + "create", body=NEW),
    Route("GET", ONE_PROVIDER, show, rule=RULE + "show", answers_json=True),
    Route("PUT", ONE_PROVIDER, update, rule=RULE + "update", body=CHANGE),
    Route("DELETE", ONE_PROVIDER, delete, rule=RULE + "delete"),
)

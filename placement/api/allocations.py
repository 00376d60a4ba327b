"""/allocations: what consumers hold of providers; and /reshaper, which moves it together with inventories."""

from collections.abc import Sequence
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import ANYTHING, UUID, Array, Map, Object, integer, text
from placement.api.inventories import ALL as ALL_INVENTORIES
from placement.api.inventories import inventory_of
from placement.api.routing import Route
from placement.api.versions import Versioned
from placement.domain.inventory import Claim, ConsumerAllocations, ProviderAllocations
from placement.domain.names import MAX_NAME_LENGTH, NAME_PATTERN, UNTYPED, canonical_uuid, is_uuid_like
from placement.errors import Invalid
from placement.services import allocations as service
from placement.services.allocations import ReshapedInventories

UUID_KEY = "[0-9a-fA-F-]{36}"


RESOURCES = Map(NAME_PATTERN, integer(minimum=1), smallest=1)
OWNER_ID = text(shortest=1, longest=255)
"""A project or user id, which need not be a uuid."""
CONSUMER_TYPE = text(pattern=NAME_PATTERN, shortest=1, longest=MAX_NAME_LENGTH)
PROVIDER_ALLOCATION = Object({"generation?": integer(), "resources": RESOURCES})
"""The resources of one provider. Clients copy ``generation`` from a GET; it is ignored."""
MAPPINGS = Map("(?s).*[a-zA-Z0-9_-].*", Array(UUID, shortest=1), value_field=ANYTHING, smallest=1)
"""Which providers serve which request group; validated and then ignored, as in the reference.

Clients send back what GET /allocation_candidates returned. The value of the unsuffixed group, "", is not even
validated, because the reference's key pattern requires a character.
"""

_LISTED = Object({"resource_provider": Object({"uuid": UUID}), "resources": RESOURCES})
_LIST = {"allocations": Array(_LISTED, shortest=1)}
_OWNER = {"project_id": OWNER_ID, "user_id": OWNER_ID}
_BY_PROVIDER = {"allocations": Map(UUID_KEY, PROVIDER_ALLOCATION)} | _OWNER
_AT_1_28 = _BY_PROVIDER | {"consumer_generation": integer(nullable=True)}
_AT_1_34 = _AT_1_28 | {"mappings?": MAPPINGS}
ENTRIES = {
    (1, 13): Object(_BY_PROVIDER),
    (1, 28): Object(_AT_1_28),
    (1, 34): Object(_AT_1_34),
    (1, 38): Object(_AT_1_34 | {"consumer_type": CONSUMER_TYPE}),
}
"""What is said about one consumer, in a body about several."""


def by_consumer(since: tuple[int, int], *, smallest: int = 0) -> Map:
    """Return the field for entries of a microversion, by consumer uuid."""
    return Map(UUID_KEY, ENTRIES[since], smallest=smallest)


PUT = Versioned(
    {
        (1, 0): Object(_LIST),
        (1, 8): Object(_LIST | _OWNER),
        (1, 12): Object(_BY_PROVIDER | {"allocations": Map(UUID_KEY, PROVIDER_ALLOCATION, smallest=1)}),
        **{since: entry for since, entry in ENTRIES.items() if since > (1, 13)},
    }
)
POST = Versioned({since: by_consumer(since, smallest=1) for since in ENTRIES})


def _amounts(allocations: Any) -> dict[str, dict[str, int]]:
    """Return amounts by provider from a list or an object; if a list names a provider twice, its last entry wins."""
    if isinstance(allocations, list):
        return {entry["resource_provider"]["uuid"]: entry["resources"] for entry in allocations}
    return {uuid: entry["resources"] for uuid, entry in allocations.items()}


def claim_of(call: Call, consumer_uuid: str, entry: dict[str, Any]) -> Claim:
    """Return one consumer's claim from a loaded body."""
    defaults = call.server.settings.placement
    return Claim(
        consumer_uuid=consumer_uuid,
        allocations=_amounts(entry["allocations"]),
        project_id=entry.get("project_id", defaults.incomplete_consumer_project_id),
        user_id=entry.get("user_id", defaults.incomplete_consumer_user_id),
        consumer_type=entry.get("consumer_type"),
        checks_generation=call.since(28),
        consumer_generation=entry.get("consumer_generation"),
    )


def claims_of(call: Call, entries: dict[str, dict[str, Any]]) -> list[Claim]:
    """Return the claims of entries keyed by consumer uuid."""
    return [claim_of(call, consumer_uuid, entry) for consumer_uuid, entry in entries.items()]


RULE = "placement:allocations:"


def show(call: Call, consumer_uuid: str) -> Response:
    """Return a consumer's allocations; an unknown consumer has none."""
    held = service.consumer_allocations(call.database, consumer_uuid)
    if held is None:
        return call.json({"allocations": {}})
    return call.json(_shown(call, held), last_modified=held.modified)


def _shown(call: Call, held: ConsumerAllocations) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "allocations": {
            uuid: {"generation": share.generation, "resources": share.resources} for uuid, share in held.shares.items()
        }
    }
    if call.since(12):
        shown |= {"project_id": held.project_id, "user_id": held.user_id}
    if call.since(28):
        shown["consumer_generation"] = held.consumer_generation
    if call.since(38):
        shown["consumer_type"] = held.consumer_type or UNTYPED
    return shown


def show_provider(call: Call, uuid: str) -> Response:
    """Return the allocations of a provider."""
    held = service.provider_allocations(call.database, uuid)
    return call.json(_shown_provider(call, held), last_modified=held.modified)


def _shown_provider(call: Call, held: ProviderAllocations) -> dict[str, Any]:
    if call.since(28):
        shares: dict[str, Any] = {
            uuid: {"resources": share.resources, "consumer_generation": share.generation}
            for uuid, share in held.shares.items()
        }
    else:
        shares = {uuid: {"resources": share.resources} for uuid, share in held.shares.items()}
    return {"allocations": shares, "resource_provider_generation": held.generation}


def replace(call: Call, consumer_uuid: str) -> Response:
    """Replace a consumer's allocations."""
    if not is_uuid_like(consumer_uuid):
        raise Invalid(f"Malformed consumer_uuid: {consumer_uuid}")
    claim = claim_of(call, canonical_uuid(consumer_uuid), call.body(PUT))
    _replace(call, [claim])
    return call.empty()


def replace_many(call: Call) -> Response:
    """Replace the allocations of several consumers, all or none."""
    _replace(call, claims_of(call, call.body(POST)))
    return call.empty()


def _replace(call: Call, claims: Sequence[Claim]) -> None:
    server = call.server
    service.replace_allocations(call.database, claims, gate=server.plain_gate, locks=server.locks)
    if judge := server.judge:
        for claim in claims:
            if claim.consumer_generation is None:
                judge.note_allocated(claim.allocations.values())


def delete(call: Call, consumer_uuid: str) -> Response:
    """Delete all allocations of a consumer."""
    service.delete_allocations(call.database, consumer_uuid)
    return call.empty()


RESHAPED = Versioned(
    {
        max(since, (1, 30)): Object(
            {"inventories": Map(UUID_KEY, ALL_INVENTORIES, smallest=1), "allocations": by_consumer(since)}
        )
        for since in ENTRIES
        if since > (1, 13)
    }
)


def reshape(call: Call) -> Response:
    """Replace inventories and allocations together, all or none."""
    body = call.body(RESHAPED)
    reshaped = {
        uuid: ReshapedInventories(
            entry["resource_provider_generation"],
            {name: inventory_of(amounts) for name, amounts in entry["inventories"].items()},
        )
        for uuid, entry in body["inventories"].items()
    }
    locks = call.server.locks
    service.reshape(call.database, reshaped, claims_of(call, body["allocations"]), locks=locks)
    return call.empty()


ONE_CONSUMER = "/allocations/<consumer_uuid>"
OF_PROVIDER = "/resource_providers/<uuid>/allocations"
ROUTES = (
    Route("POST", "/allocations", replace_many, rule=RULE + "manage", since=(1, 13), body=POST),
    Route("GET", ONE_CONSUMER, show, rule=RULE + "list", answers_json=True),
    Route("PUT", ONE_CONSUMER, replace, rule=RULE + "update", body=PUT),
    Route("DELETE", ONE_CONSUMER, delete, rule=RULE + "delete"),
    Route("GET", OF_PROVIDER, show_provider, rule="placement:resource_providers:allocations:list", answers_json=True),
    Route("POST", "/reshaper", reshape, rule="placement:reshaper:reshape", since=(1, 30), body=RESHAPED),
)

"""/allocations: what consumers hold of providers."""

from collections.abc import Sequence
from typing import Any

from flask import Response

from placement.api import allocation_schemas as schemas
from placement.api.allocation_schemas import claim_of, claims_of
from placement.api.call import Call
from placement.api.candidate_query import judge_in_force
from placement.api.routing import Route
from placement.domain.allocation import Claim, ConsumerAllocations, ProviderAllocations
from placement.domain.names import UNTYPED, canonical_uuid, is_uuid_like
from placement.errors import Invalid
from placement.services import allocations as service

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
    claim = claim_of(call, canonical_uuid(consumer_uuid), call.body(schemas.PUT))
    _replace(call, [claim])
    return call.empty()


def replace_many(call: Call) -> Response:
    """Replace the allocations of several consumers, all or none."""
    _replace(call, claims_of(call, call.body(schemas.POST)))
    return call.empty()


def _replace(call: Call, claims: Sequence[Claim]) -> None:
    server = call.server
    service.replace_allocations(call.database, claims, gate=server.plain_gate, locks=server.settings.locks_for_all)
    if judge := judge_in_force(call):
        for claim in claims:
            if claim.consumer_generation is None:
                judge.note_allocated(claim.allocations.values())


def delete(call: Call, consumer_uuid: str) -> Response:
    """Delete all allocations of a consumer."""
    service.delete_allocations(call.database, consumer_uuid)
    return call.empty()


ONE = "/allocations/<consumer_uuid>"
OF_PROVIDER = "/resource_providers/<uuid>/allocations"
ROUTES = (
    Route("POST", "/allocations", replace_many, rule=RULE + "manage", since=(1, 13), body=schemas.POST),
    Route("GET", ONE, show, rule=RULE + "list", answers_json=True),
    Route("PUT", ONE, replace, rule=RULE + "update", body=schemas.PUT),
    Route("DELETE", ONE, delete, rule=RULE + "delete"),
    Route("GET", OF_PROVIDER, show_provider, rule="placement:resource_providers:allocations:list", answers_json=True),
)

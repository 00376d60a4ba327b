"""/allocations: what consumers hold of providers.

There is one schema per range of microversions. A loaded body is ``{"allocations": {provider uuid: resources}, ...}`` at
any of them, with ``project_id``, ``user_id``, ``consumer_generation`` and ``consumer_type`` where the microversion has
them.
"""

from collections.abc import Sequence
from typing import Any

from flask import Response
from marshmallow import fields, post_load

from placement.api.call import Call
from placement.api.candidate_query import judge_in_force
from placement.api.fields import Array, Integer, JsonText, Mapping, Object, Schema, Uuid
from placement.api.routing import Route
from placement.api.versions import Versioned
from placement.domain.allocation import Claim, ConsumerAllocations, ProviderAllocations
from placement.domain.names import MAX_NAME_LENGTH, NAME_PATTERN, UNTYPED, canonical_uuid, is_uuid_like
from placement.errors import Invalid
from placement.services import allocations as service

UUID_KEY = "[0-9a-fA-F-]{36}"


def resources() -> Mapping:
    """Return a field for amounts by resource class."""
    return Mapping(NAME_PATTERN, Integer(minimum=1), smallest=1)


def owner_id() -> JsonText:
    """Return a field for a project or user id, which need not be a uuid."""
    return JsonText(shortest=1, longest=255)


class GroupMappings(Mapping):
    """Which providers serve which request group; validated and then ignored, as in the reference.

    Clients send back what GET /allocation_candidates returned. The value of the unsuffixed group, "", is not even
    validated, because the reference's key pattern requires a character.
    """

    def __init__(self, **options: Any) -> None:
        anything = fields.Raw(allow_none=True)
        super().__init__("(?s).*[a-zA-Z0-9_-].*", Array(Uuid(), shortest=1), others=anything, smallest=1, **options)


class ListedProvider(Schema):
    """The provider of a list entry, up to 1.11."""

    uuid = Uuid()


class ListedAllocation(Schema):
    """A list entry, up to 1.11."""

    resource_provider = Object(ListedProvider)
    resources = resources()


class ListedAllocations(Schema):
    """The body of PUT, 1.0 to 1.7."""

    allocations = Array(Object(ListedAllocation), shortest=1)

    @post_load
    def by_provider(self, loaded: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Turn the list into the dict of later versions; if a provider is repeated, its last entry wins."""
        entries = {entry["resource_provider"]["uuid"]: entry["resources"] for entry in loaded["allocations"]}
        return {**loaded, "allocations": entries}


class ListedWithOwner(ListedAllocations):
    """The body of PUT, 1.8 to 1.11."""

    project_id = owner_id()
    user_id = owner_id()


class ProviderAllocation(Schema):
    """The resources of one provider. Clients copy ``generation`` from a GET; it is ignored."""

    generation = Integer(required=False)
    resources = resources()


class ByProvider(Schema):
    """One consumer's entry in POST, 1.13 to 1.27; may be empty."""

    allocations = Mapping(UUID_KEY, Object(ProviderAllocation))
    project_id = owner_id()
    user_id = owner_id()

    @post_load
    def without_generations(self, loaded: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Drop the generations, which are ignored."""
        entries = {uuid: entry["resources"] for uuid, entry in loaded["allocations"].items()}
        return {**loaded, "allocations": entries}


class NonEmptyByProvider(ByProvider):
    """The body of PUT, 1.12 to 1.27."""

    allocations = Mapping(UUID_KEY, Object(ProviderAllocation), smallest=1)


class WithGeneration(ByProvider):
    """The body of PUT, and one consumer's entry in POST, 1.28 to 1.33."""

    consumer_generation = Integer(nullable=True)


class WithMappings(WithGeneration):
    """The body of PUT, and one consumer's entry in POST, 1.34 to 1.37."""

    mappings = GroupMappings(required=False)


class WithType(WithMappings):
    """The body of PUT, and one consumer's entry in POST, from 1.38."""

    consumer_type = JsonText(pattern=NAME_PATTERN, shortest=1, longest=MAX_NAME_LENGTH)


class ByConsumer(Schema):
    """A body keyed by consumer uuid."""

    def __init__(self, entry: type[Schema]) -> None:
        super().__init__()
        self.entries = by_consumer(entry, smallest=1)

    def load(self, data: Any, **_: Any) -> Any:
        """Validate the body."""
        return self.entries.deserialize(data)


def by_consumer(entry: type[Schema], *, smallest: int = 0) -> Mapping:
    """Return a field for entries keyed by consumer uuid."""
    return Mapping(UUID_KEY, Object(entry), smallest=smallest)


PUT: Versioned[Schema] = Versioned(
    {
        (1, 0): ListedAllocations(),
        (1, 8): ListedWithOwner(),
        (1, 12): NonEmptyByProvider(),
        (1, 28): WithGeneration(),
        (1, 34): WithMappings(),
        (1, 38): WithType(),
    }
)
POST: Versioned[Schema] = Versioned(
    {
        (1, 13): ByConsumer(ByProvider),
        (1, 28): ByConsumer(WithGeneration),
        (1, 34): ByConsumer(WithMappings),
        (1, 38): ByConsumer(WithType),
    }
)


def claim_of(call: Call, consumer_uuid: str, entry: dict[str, Any]) -> Claim:
    """Return one consumer's claim from a body loaded by the schemas above."""
    defaults = call.server.settings.placement
    return Claim(
        consumer_uuid=consumer_uuid,
        allocations=entry["allocations"],
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
    Route("POST", "/allocations", replace_many, rule=RULE + "manage", since=(1, 13), body=POST),
    Route("GET", ONE, show, rule=RULE + "list", answers_json=True),
    Route("PUT", ONE, replace, rule=RULE + "update", body=PUT),
    Route("DELETE", ONE, delete, rule=RULE + "delete"),
    Route("GET", OF_PROVIDER, show_provider, rule="placement:resource_providers:allocations:list", answers_json=True),
)

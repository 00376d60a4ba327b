"""Schemas of request bodies with allocations, one per range of microversions; all load to the same shape of claim.

A loaded body is ``{"allocations": {provider uuid: resources}, ...}`` at any microversion, with ``project_id``,
``user_id``, ``consumer_generation`` and ``consumer_type`` where the microversion has them.
"""

from typing import Any

from marshmallow import fields, post_load

from placement.api.call import Call
from placement.api.fields import Array, Integer, JsonText, Mapping, Object, Uuid
from placement.api.validation import Schema
from placement.api.versions import Versioned
from placement.domain.allocation import Claim
from placement.domain.names import MAX_NAME_LENGTH, NAME_PATTERN

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
    """Return one consumer's claim from a body loaded by ``allocation_schemas``."""
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

"""Conversion of validated bodies to claims, for every REST resource whose body carries allocations."""

from typing import Any

from placement.api.call import Call
from placement.domain.allocation import Claim


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

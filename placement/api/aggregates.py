"""/resource_providers/{uuid}/aggregates: the aggregates that a provider belongs to."""

from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import UUID, Array, Object, integer
from placement.api.resource_providers import ONE_PROVIDER, body_for
from placement.api.routing import Route
from placement.domain.names import fitting_uuid
from placement.services import marks as service

RULE = "placement:resource_providers:aggregates:"

SHOWS_GENERATION = 19


BARE_LIST = Array(UUID, unique=True)
"""The list of aggregates alone (until 1.18)."""
AGGREGATES = Object({"aggregates": BARE_LIST, "resource_provider_generation": integer()})


def show(call: Call, uuid: str) -> Response:
    """Return the aggregates of a provider."""
    membership = service.membership(call.database, uuid)
    return _answer(call, membership.aggregates, membership.generation)


def _answer(call: Call, aggregates: list[str], its_generation: int) -> Response:
    shown: dict[str, Any] = {"aggregates": aggregates}
    if call.since(SHOWS_GENERATION):
        shown["resource_provider_generation"] = its_generation
    return call.json(shown)


def replace_unchecked(call: Call, uuid: str) -> Response:
    """Replace a provider's aggregates without checking its generation."""
    aggregates = body_for(call, uuid, BARE_LIST)
    service.replace_aggregates(call.database, uuid, [fitting_uuid(aggregate) for aggregate in aggregates])
    return call.json({"aggregates": aggregates})


def replace(call: Call, uuid: str) -> Response:
    """Replace a provider's aggregates if its generation still matches."""
    body = body_for(call, uuid, AGGREGATES)
    its_generation = service.replace_aggregates_at(
        call.database,
        uuid,
        [fitting_uuid(aggregate) for aggregate in body["aggregates"]],
        generation=body["resource_provider_generation"],
    )
    return _answer(call, body["aggregates"], its_generation)


PATH = f"{ONE_PROVIDER}/aggregates"
LIST, UPDATE = RULE + "list", RULE + "update"
ROUTES = (
    Route("GET", PATH, show, rule=LIST, since=(1, 1), answers_json=True, media_first=True),
    Route("PUT", PATH, replace_unchecked, rule=UPDATE, since=(1, 1), until=(1, 18), body=BARE_LIST, media_first=True),
    Route("PUT", PATH, replace, rule=UPDATE, since=(1, 19), media_first=True, body=AGGREGATES),
)

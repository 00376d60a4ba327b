"""Traits and aggregates of providers: /traits (from 1.6 on), /resource_providers/{uuid}/traits and /aggregates."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import UUID, Array, Object, integer, text
from placement.api.query import ANY, check_size
from placement.api.resource_providers import ONE_PROVIDER, body_for
from placement.api.routing import Route
from placement.domain.names import fitting_uuid
from placement.errors import Invalid
from placement.services import names as service
from placement.store.marks import ProviderTraits, Trait

AGGREGATES_RULE = "placement:resource_providers:aggregates:"

SHOWS_GENERATION = 19


BARE_LIST = Array(UUID, unique=True)
"""The list of aggregates alone (until 1.18)."""
AGGREGATES = Object({"aggregates": BARE_LIST, "resource_provider_generation": integer()})


def show_aggregates(call: Call, uuid: str) -> Response:
    """Return the aggregates of a provider."""
    membership = service.membership(call.database, uuid)
    return _aggregates_answer(call, membership.aggregates, membership.generation)


def _aggregates_answer(call: Call, aggregates: list[str], its_generation: int) -> Response:
    shown: dict[str, Any] = {"aggregates": aggregates}
    if call.since(SHOWS_GENERATION):
        shown["resource_provider_generation"] = its_generation
    return call.json(shown)


def replace_unchecked(call: Call, uuid: str) -> Response:
    """Replace a provider's aggregates without checking its generation."""
    aggregates = body_for(call, uuid, BARE_LIST)
    service.replace_aggregates(call.database, uuid, [fitting_uuid(aggregate) for aggregate in aggregates])
    return call.json({"aggregates": aggregates})


def replace_aggregates(call: Call, uuid: str) -> Response:
    """Replace a provider's aggregates if its generation still matches."""
    body = body_for(call, uuid, AGGREGATES)
    its_generation = service.replace_aggregates(
        call.database,
        uuid,
        [fitting_uuid(aggregate) for aggregate in body["aggregates"]],
        generation=body["resource_provider_generation"],
    )
    return _aggregates_answer(call, body["aggregates"], its_generation)


TRAITS_RULE = "placement:traits:"
LINK_RULE = "placement:resource_providers:traits:"

FILTERS = {"name": ANY, "associated": ANY}
TRUTH = {"true": True, "false": False}


TRAIT_SET = Object({"traits": Array(text(shortest=1, longest=255)), "resource_provider_generation": integer()})


def _newest(traits: Iterable[Trait]) -> datetime | None:
    return max((trait.modified for trait in traits if trait.modified), default=None)


def list_traits(call: Call) -> Response:
    """List the names of the traits that match the query."""
    call.query.check(FILTERS)
    names, prefix = _name_filter(call.query.last("name"))
    associated = _associated(call.query.last("associated"))
    traits = service.traits(call.database, names=names, prefix=prefix, associated=associated)
    return call.json({"traits": [trait.name for trait in traits]}, last_modified=_newest(traits))


def _name_filter(value: str | None) -> tuple[list[str] | None, str]:
    """Return the names in ``in:A,B`` and the prefix in ``startswith:P``; any other word filters nothing."""
    if value is None:
        return None, ""
    word, colon, argument = value.partition(":")
    if not colon:
        raise Invalid(
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{value}"'
        )
    if word == "in":
        check_size("name", [argument])
        return argument.split(","), ""
    return None, argument if word == "startswith" else ""


def _associated(value: str | None) -> bool | None:
    if value is None:
        return None
    if value.lower() not in TRUTH:
        raise Invalid('The query parameter "associated" only accepts "true" or "false"')
    return TRUTH[value.lower()]


def show_trait(call: Call, name: str) -> Response:
    """Check whether a trait exists."""
    trait = service.trait(call.database, name)
    response = call.empty()
    call.date(response, trait.modified)
    return response


def ensure_trait(call: Call, name: str) -> Response:
    """Create a custom trait unless it exists; takes no body."""
    trait, is_new = service.ensure_trait(call.database, name)
    response = call.empty(201 if is_new else 204, location=f"/traits/{name}")
    call.date(response, trait.modified)
    return response


def delete_trait(call: Call, name: str) -> Response:
    """Delete a custom trait that no provider has."""
    service.delete_trait(call.database, name)
    return call.empty()


def show_provider_traits(call: Call, uuid: str) -> Response:
    """Return the traits of a provider."""
    return _traits_answer(call, service.provider_traits(call.database, uuid))


def _traits_answer(call: Call, held: ProviderTraits) -> Response:
    shown = {"traits": [trait.name for trait in held.traits], "resource_provider_generation": held.generation}
    return call.json(shown, last_modified=_newest(held.traits))


def replace_provider_traits(call: Call, uuid: str) -> Response:
    """Replace the traits of a provider."""
    body = call.body(TRAIT_SET)
    replaced = service.replace_provider_traits(
        call.database, uuid, body["traits"], generation=body["resource_provider_generation"]
    )
    return _traits_answer(call, replaced)


def clear_provider_traits(call: Call, uuid: str) -> Response:
    """Remove all traits from a provider."""
    service.clear_provider_traits(call.database, uuid)
    return call.empty()


NAMED = "/traits/<name>"
OF_PROVIDER = f"{ONE_PROVIDER}/traits"
SINCE = (1, 6)
IN_AGGREGATES = f"{ONE_PROVIDER}/aggregates"
LIST, UPDATE = AGGREGATES_RULE + "list", AGGREGATES_RULE + "update"
ROUTES = (
    Route("GET", IN_AGGREGATES, show_aggregates, rule=LIST, since=(1, 1), answers_json=True, media_first=True),
    Route(
        "PUT",
        IN_AGGREGATES,
        replace_unchecked,
        rule=UPDATE,
        since=(1, 1),
        until=(1, 18),
        body=BARE_LIST,
        media_first=True,
    ),
    Route("PUT", IN_AGGREGATES, replace_aggregates, rule=UPDATE, since=(1, 19), media_first=True, body=AGGREGATES),
    Route("GET", "/traits", list_traits, rule=TRAITS_RULE + "list", since=SINCE, answers_json=True, query=FILTERS),
    Route("GET", NAMED, show_trait, rule=TRAITS_RULE + "show", since=SINCE),
    Route("PUT", NAMED, ensure_trait, rule=TRAITS_RULE + "update", since=SINCE),
    Route("DELETE", NAMED, delete_trait, rule=TRAITS_RULE + "delete", since=SINCE),
    Route("GET", OF_PROVIDER, show_provider_traits, rule=LINK_RULE + "list", since=SINCE, answers_json=True),
    Route("PUT", OF_PROVIDER, replace_provider_traits, rule=LINK_RULE + "update", since=SINCE, body=TRAIT_SET),
    Route("DELETE", OF_PROVIDER, clear_provider_traits, rule=LINK_RULE + "delete", since=SINCE),
)

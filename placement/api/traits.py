"""/traits and /resource_providers/{uuid}/traits: the properties of providers, all from 1.6 on."""

from collections.abc import Iterable
from datetime import datetime

from flask import Response

from placement.api.call import Call
from placement.api.fields import Array, Object, integer, text
from placement.api.query import ANY, check_size
from placement.api.resource_providers import ONE_PROVIDER
from placement.api.routing import Route
from placement.errors import Invalid
from placement.services import marks as service
from placement.store.marks import ProviderTraits, Trait

RULE = "placement:traits:"
OF_RULE = "placement:resource_providers:traits:"

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


def show(call: Call, name: str) -> Response:
    """Check whether a trait exists."""
    trait = service.trait(call.database, name)
    response = call.empty()
    call.date(response, trait.modified)
    return response


def ensure(call: Call, name: str) -> Response:
    """Create a custom trait unless it exists; takes no body."""
    trait, is_new = service.ensure_trait(call.database, name)
    response = call.empty(201 if is_new else 204, location=f"/traits/{name}")
    call.date(response, trait.modified)
    return response


def delete(call: Call, name: str) -> Response:
    """Delete a custom trait that no provider has."""
    service.delete_trait(call.database, name)
    return call.empty()


def show_of_provider(call: Call, uuid: str) -> Response:
    """Return the traits of a provider."""
    return _answer(call, service.provider_traits(call.database, uuid))


def _answer(call: Call, held: ProviderTraits) -> Response:
    shown = {"traits": [trait.name for trait in held.traits], "resource_provider_generation": held.generation}
    return call.json(shown, last_modified=_newest(held.traits))


def replace_of_provider(call: Call, uuid: str) -> Response:
    """Replace the traits of a provider."""
    body = call.body(TRAIT_SET)
    replaced = service.replace_provider_traits(
        call.database, uuid, body["traits"], generation=body["resource_provider_generation"]
    )
    return _answer(call, replaced)


def clear_of_provider(call: Call, uuid: str) -> Response:
    """Remove all traits from a provider."""
    service.clear_provider_traits(call.database, uuid)
    return call.empty()


NAMED = "/traits/<name>"
OF_PROVIDER = f"{ONE_PROVIDER}/traits"
SINCE = (1, 6)
ROUTES = (
    Route("GET", "/traits", list_traits, rule=RULE + "list", since=SINCE, answers_json=True, query=FILTERS),
    Route("GET", NAMED, show, rule=RULE + "show", since=SINCE),
    Route("PUT", NAMED, ensure, rule=RULE + "update", since=SINCE),
    Route("DELETE", NAMED, delete, rule=RULE + "delete", since=SINCE),
    Route("GET", OF_PROVIDER, show_of_provider, rule=OF_RULE + "list", since=SINCE, answers_json=True),
    Route("PUT", OF_PROVIDER, replace_of_provider, rule=OF_RULE + "update", since=SINCE, body=TRAIT_SET),
    Route("DELETE", OF_PROVIDER, clear_of_provider, rule=OF_RULE + "delete", since=SINCE),
)

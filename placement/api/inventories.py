"""Inventories and usage: /resource_providers/{uuid}/inventories and /usages, and /usages of projects."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import MAX_COLUMN_VALUE, Field, Map, Object, integer, number, text
from placement.api.resource_providers import ONE_PROVIDER, body_for, path_of
from placement.api.routing import Route
from placement.api.versions import Versioned
from placement.domain.inventory import Inventory, TypeUsage
from placement.domain.names import MAX_NAME_LENGTH, NAME_PATTERN, UNTYPED
from placement.services import inventories as service
from placement.services.inventories import NewInventories

MAX_RATIO = 3.40282e38
"""The largest single-precision float."""


def _amount(minimum: int) -> Field:
    return integer(minimum=minimum, maximum=MAX_COLUMN_VALUE)


_INVENTORY = {
    "total": _amount(1),
    "reserved?": _amount(0),
    "min_unit?": _amount(1),
    "max_unit?": _amount(1),
    "step_size?": _amount(1),
    "allocation_ratio?": number(maximum=MAX_RATIO),
}
_GENERATION = {"resource_provider_generation": integer()}
_IGNORED_GENERATION = {"resource_provider_generation?": integer()}
NEW = Object(_INVENTORY | _IGNORED_GENERATION | {"resource_class": text(pattern=NAME_PATTERN)})
CHANGED = Object(_INVENTORY | _GENERATION)
ALL = Object(_GENERATION | {"inventories": Map(NAME_PATTERN, Object(_INVENTORY | _IGNORED_GENERATION))})

AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""The fields of an inventory, in every body that has one."""


def inventory_of(body: dict[str, Any]) -> Inventory:
    """Return the inventory that a body describes, with defaults for what it omits."""
    return Inventory(**{field: body[field] for field in AMOUNTS if field in body})


RULE = "placement:resource_providers:inventories:"


def _new(call: Call, bodies: dict[str, dict[str, Any]]) -> NewInventories:
    by_class = {name: inventory_of(body) for name, body in bodies.items()}
    return NewInventories(by_class, may_be_all_reserved=call.since(26))


def _shown(inventory: Inventory) -> dict[str, Any]:
    return {field: getattr(inventory, field) for field in AMOUNTS}


def list_inventories(call: Call, uuid: str) -> Response:
    """List the inventories of a provider."""
    stock = service.stock(call.database, uuid)
    newest = max((changed_at for changed_at in stock.modified.values() if changed_at), default=None)
    shown = {name: _shown(inventory) for name, inventory in stock.inventories.items()}
    return call.json({"resource_provider_generation": stock.generation, "inventories": shown}, last_modified=newest)


def show(call: Call, uuid: str, resource_class: str) -> Response:
    """Return a provider's inventory of one class."""
    inventory, its_generation, modified = service.inventory(call.database, uuid, resource_class)
    return call.json({**_shown(inventory), "resource_provider_generation": its_generation}, last_modified=modified)


def create(call: Call, uuid: str) -> Response:
    """Add an inventory of another class to a provider."""
    body = body_for(call, uuid, NEW)
    name = body["resource_class"]
    new = _new(call, {name: body})
    its_generation = service.add_inventory(call.database, uuid, new)
    shown = {**_shown(new.by_class[name]), "resource_provider_generation": its_generation}
    response = call.json(shown, status=201)
    call.locate(response, path_of(uuid, "inventories", name))
    return response


def update(call: Call, uuid: str, resource_class: str) -> Response:
    """Change a provider's inventory of one class."""
    body = body_for(call, uuid, CHANGED)
    new = _new(call, {resource_class: body})
    its_generation = service.change_inventory(call.database, uuid, new, generation=body["resource_provider_generation"])
    return call.json({**_shown(new.by_class[resource_class]), "resource_provider_generation": its_generation})


def replace(call: Call, uuid: str) -> Response:
    """Replace all inventories of a provider."""
    body = body_for(call, uuid, ALL)
    new = _new(call, body["inventories"])
    its_generation = service.replace_inventories(
        call.database, uuid, new, generation=body["resource_provider_generation"]
    )
    shown = {name: _shown(inventory) for name, inventory in new.by_class.items()}
    return call.json({"resource_provider_generation": its_generation, "inventories": shown})


def clear(call: Call, uuid: str) -> Response:
    """Delete all inventories of a provider."""
    service.clear_inventories(call.database, uuid)
    return call.empty()


def delete(call: Call, uuid: str, resource_class: str) -> Response:
    """Delete a provider's inventory of one class."""
    service.delete_inventory(call.database, uuid, resource_class)
    return call.empty()


USAGES_RULE, PROVIDER_USAGES_RULE = "placement:usages", "placement:resource_providers:usages"
ALL_TYPES = "all"

_OWNER_ID = text(shortest=1, longest=255)
# Only the beginning of "all" is anchored in the reference's pattern.
_TYPE = text(pattern=f"{NAME_PATTERN}$|^{ALL_TYPES}.*|^{UNTYPED}", shortest=1, longest=MAX_NAME_LENGTH)
USAGE_KEYS = Versioned(
    {
        (1, 9): {"project_id": _OWNER_ID, "user_id": _OWNER_ID},
        (1, 38): {"project_id": _OWNER_ID, "user_id": _OWNER_ID, "consumer_type": _TYPE},
    }
)


def show_usage(call: Call, uuid: str) -> Response:
    """Return a provider's usage of each class that it has inventory of."""
    usage = service.provider_usage(call.database, uuid)
    return call.json({"resource_provider_generation": usage.generation, "usages": usage.amounts})


def show_project(call: Call) -> Response:
    """Return the usage of a project, or of one user in it."""
    project_id, user_id = _whose(call)
    return call.json({"usages": service.project_usage(call.database, project_id, user_id)})


def show_project_by_type(call: Call) -> Response:
    """Return the usage of a project, or of one user in it, by consumer type (from 1.38)."""
    project_id, user_id = _whose(call)
    usage = service.project_usage_by_type(call.database, project_id, user_id)
    return call.json({"usages": _usage_by_type(usage, call.query.last("consumer_type"))})


def _whose(call: Call) -> tuple[str, str | None]:
    """Return project and user from the query, once the caller is authorized to see that project."""
    project_id = call.query.last("project_id")
    call.authorize(USAGES_RULE, project_id=project_id)
    call.query.check(USAGE_KEYS.at(call.version), required=("project_id",))
    assert project_id is not None
    return project_id, call.query.last("user_id")


def _usage_by_type(usage: Mapping[str | None, TypeUsage], consumer_type: str | None) -> dict[str, dict[str, int]]:
    """Return usage keyed by type name: one type, all types merged, or each of them."""
    if consumer_type == ALL_TYPES:
        return {ALL_TYPES: _merged(usage)} if usage else {}
    return {
        type_ or UNTYPED: {**of_type.amounts, "consumer_count": of_type.consumers}
        for type_, of_type in usage.items()
        if consumer_type in (None, type_ or UNTYPED)
    }


def _merged(usage: Mapping[str | None, TypeUsage]) -> dict[str, int]:
    """Sum over all types; consumer counts add up because a consumer has one type."""
    amounts: Counter[str] = Counter()
    for of_type in usage.values():
        amounts.update(of_type.amounts)
    return {**amounts, "consumer_count": sum(of_type.consumers for of_type in usage.values())}


OF_PROVIDER = f"{ONE_PROVIDER}/inventories"
OF_CLASS = f"{OF_PROVIDER}/<resource_class>"
_OF_PROJECT: dict[str, Any] = {"view_rules": (USAGES_RULE,), "answers_json": True, "query": USAGE_KEYS}
ROUTES = (
    Route("GET", OF_PROVIDER, list_inventories, rule=RULE + "list", answers_json=True),
    Route("POST", OF_PROVIDER, create, rule=RULE + "create", body=NEW),
    Route("PUT", OF_PROVIDER, replace, rule=RULE + "update", body=ALL),
    Route("DELETE", OF_PROVIDER, clear, rule=RULE + "delete", since=(1, 5), status_if_unserved=405),
    Route("GET", OF_CLASS, show, rule=RULE + "show", answers_json=True),
    Route("PUT", OF_CLASS, update, rule=RULE + "update", body=CHANGED),
    Route("DELETE", OF_CLASS, delete, rule=RULE + "delete"),
    Route("GET", "/resource_providers/<uuid>/usages", show_usage, rule=PROVIDER_USAGES_RULE, answers_json=True),
    # The policy check needs the project in the query.
    Route("GET", "/usages", show_project, since=(1, 9), until=(1, 37), **_OF_PROJECT),
    Route("GET", "/usages", show_project_by_type, since=(1, 38), **_OF_PROJECT),
)

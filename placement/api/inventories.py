"""/resource_providers/{uuid}/inventories: what a provider has of each resource class."""

from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import MAX_COLUMN_VALUE, Field, Map, Object, integer, number, text
from placement.api.resource_providers import ONE_PROVIDER, body_for, path_of
from placement.api.routing import Route
from placement.domain.inventory import Inventory
from placement.domain.names import NAME_PATTERN
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
    return {
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    }


def list_inventories(call: Call, uuid: str) -> Response:
    """List the inventories of a provider."""
    stock = service.stock(call.database, uuid)
    newest = max((changed_at for changed_at in stock.modified.values() if changed_at), default=None)
    shown = {name: _shown(inventory) for name, inventory in stock.inventories.items()}
    return call.json(
        {"resource_provider_generation": stock.generation, "inventories": shown},
        last_modified=newest,
    )


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


OF_PROVIDER = f"{ONE_PROVIDER}/inventories"
OF_CLASS = f"{OF_PROVIDER}/<resource_class>"
ROUTES = (
    Route("GET", OF_PROVIDER, list_inventories, rule=RULE + "list", answers_json=True),
    Route("POST", OF_PROVIDER, create, rule=RULE + "create", body=NEW),
    Route("PUT", OF_PROVIDER, replace, rule=RULE + "update", body=ALL),
    Route("DELETE", OF_PROVIDER, clear, rule=RULE + "delete", since=(1, 5), status_if_unserved=405),
    Route("GET", OF_CLASS, show, rule=RULE + "show", answers_json=True),
    Route("PUT", OF_CLASS, update, rule=RULE + "update", body=CHANGED),
    Route("DELETE", OF_CLASS, delete, rule=RULE + "delete"),
)

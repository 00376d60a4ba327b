"""Schemas of request bodies with inventories, and the values they describe."""

from typing import Any

from placement.api.fields import MAX_COLUMN_VALUE, Integer, JsonNumber, JsonText, Mapping, Object
from placement.api.provider_query import generation
from placement.api.validation import Schema
from placement.domain.inventory import Inventory
from placement.domain.names import NAME_PATTERN

MAX_RATIO = 3.40282e38
"""The largest single-precision float."""


def _amount(*, minimum: int, required: bool = False) -> Integer:
    return Integer(minimum=minimum, maximum=MAX_COLUMN_VALUE, required=required)


class InventoryBody(Schema):
    """One of several inventories; a generation in it is ignored."""

    total = _amount(minimum=1, required=True)
    reserved = _amount(minimum=0)
    min_unit = _amount(minimum=1)
    max_unit = _amount(minimum=1)
    step_size = _amount(minimum=1)
    allocation_ratio = JsonNumber(maximum=MAX_RATIO, required=False)
    resource_provider_generation = generation(required=False)


class NewInventory(InventoryBody):
    """An inventory of a class that the provider has none of yet; a generation in it is ignored."""

    resource_class = JsonText(pattern=NAME_PATTERN)


class ChangedInventory(InventoryBody):
    """An inventory of the class in the path."""

    resource_provider_generation = generation()


class AllInventories(Schema):
    """All inventories of a provider."""

    resource_provider_generation = generation()
    inventories = Mapping(NAME_PATTERN, Object(InventoryBody))


AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""The fields of an inventory, in every body that has one."""


def inventory_of(body: dict[str, Any]) -> Inventory:
    """Return the inventory that a body describes, with defaults for what it omits."""
    return Inventory(**{field: body[field] for field in AMOUNTS if field in body})

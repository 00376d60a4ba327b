"""Inventory records, and writes to the inventories of one provider."""

from typing import Any

from tests.differential.generate.world import World
from tests.differential.requests import Request


def inventory(world: World) -> dict[str, Any]:
    """Return an inventory record: plain, or with restrictive units, reserved amount and ratio."""
    total = world.one((1, 2, 4, 8, 8, 16, 16))
    record: dict[str, Any] = {"total": total}
    if world.chance(12):
        record["reserved"] = world.random.randint(0, total)
    if world.chance(20):
        record["allocation_ratio"] = world.one((0.5, 1.0, 1.5, 2, 16.0))
    if world.chance(10):
        record["min_unit"] = world.random.randint(1, 3)
    if world.chance(15):
        record["max_unit"] = world.random.randint(1, 8)
    if world.chance(10):
        record["step_size"] = world.random.randint(1, 3)
    return record


def inventory_write(world: World) -> Request:
    """Write inventories in one of the five ways."""
    ways = (_put_all, _put_one, _post_one, _delete_one, _delete_all)
    return world.random.choices(ways, (35, 25, 20, 15, 5))[0](world, world.provider())


def _path(node: str) -> str:
    return f"/resource_providers/{node}/inventories"


def _known_class(world: World, node: str) -> str:
    own = world.inventories.get(node)
    return world.one(own) if own and world.chance(80) else world.resource_class()


def _put_all(world: World, node: str) -> Request:
    names = world.some(world.classes, 3) if world.chance(90) else []
    if names:
        world.inventories[node] = names
    if world.chance(2):
        names = [*names, world.resource_class()]
    body = {
        "resource_provider_generation": world.provider_generation(node),
        "inventories": {name: inventory(world) for name in names},
    }
    return world.request("PUT", _path(node), world.minor(), body)


def _put_one(world: World, node: str) -> Request:
    body = {"resource_provider_generation": world.provider_generation(node), **inventory(world)}
    return world.request("PUT", f"{_path(node)}/{_known_class(world, node)}", world.minor(), body)


def _post_one(world: World, node: str) -> Request:
    name = world.resource_class()
    body: dict[str, Any] = {"resource_class": name, **inventory(world)}
    if world.chance(50):
        body["resource_provider_generation"] = world.provider_generation(node)
    world.inventories.setdefault(node, []).append(name)
    return world.request("POST", _path(node), world.minor(), body)


def _delete_one(world: World, node: str) -> Request:
    return world.request("DELETE", f"{_path(node)}/{_known_class(world, node)}", world.minor())


def _delete_all(world: World, node: str) -> Request:
    return world.request("DELETE", _path(node), world.minor(4))

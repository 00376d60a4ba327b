"""Writes: to allocations and inventories in every form they have had, to providers, traits, aggregates and classes."""

from typing import Any

from tests.clouds import SHARES
from tests.differential.generate.world import (
    CONSUMER_TYPES,
    NEWEST,
    PROJECTS,
    UNKNOWN_CLASS,
    UNKNOWN_TRAIT,
    USERS,
    World,
)
from tests.differential.requests import Request


def write(world: World) -> Request:
    """Return a write to any route."""
    ways, weights = zip(*WAYS, strict=True)
    return world.random.choices(ways, weights)[0](world)


def claim(world: World) -> Request:
    """PUT the allocations of one consumer."""
    consumer = world.one(world.consumers)
    minor = world.minor()
    return world.request("PUT", f"/allocations/{consumer}", minor, _entry(world, consumer, minor))


def claims(world: World) -> Request:
    """POST the allocations of several consumers; some are cleared, as in a swap."""
    minor = world.minor(13)
    chosen = world.some(world.consumers, 3)
    entries = {consumer: _entry(world, consumer, minor, can_be_empty=True) for consumer in chosen}
    return world.request("POST", "/allocations", minor, entries)


def release(world: World) -> Request:
    """DELETE the allocations of one consumer."""
    return world.request("DELETE", f"/allocations/{world.one(world.consumers)}", world.minor())


def _entry(world: World, consumer: str, minor: int, *, can_be_empty: bool = False) -> dict[str, Any]:
    parts = _parts(world)
    if (can_be_empty or minor >= 28) and world.chance(15):
        parts = {}
    entry: dict[str, Any] = {"allocations": {node: {"resources": part} for node, part in parts.items()}}
    if minor < 12:
        entry["allocations"] = [
            {"resource_provider": {"uuid": node}, "resources": part} for node, part in parts.items()
        ]
    if minor >= 8:
        entry |= {"project_id": world.one(PROJECTS), "user_id": world.one(USERS)}
    if minor >= 28:
        entry["consumer_generation"] = world.consumer_generation(consumer)
    if minor >= 34 and parts and world.chance(40):
        entry["mappings"] = {world.one(("", "1", "_A")): list(parts)}
    if minor >= 38:
        entry["consumer_type"] = world.one(CONSUMER_TYPES)
    return entry


def _parts(world: World) -> dict[str, dict[str, int]]:
    """Choose providers and amounts, mostly of classes the provider has."""
    parts: dict[str, dict[str, int]] = {}
    stocked = list(world.inventories)
    for _ in range(world.random.choices((1, 2, 3), (60, 30, 10))[0]):
        node = world.one(stocked) if stocked and world.chance(93) else world.provider()
        own = world.inventories.get(node, [])
        names = world.some(own, 2) if own and world.chance(95) else [world.resource_class()]
        parts[node] = {name: world.amount() for name in names}
    return parts


def reshape(world: World) -> Request:
    """POST /reshaper: new inventories of some providers and new allocations of some consumers."""
    minor = world.minor(30)
    inventories = {}
    for node in world.some(world.providers, 2):
        names = world.random.sample(world.classes, world.random.randint(0, 2))
        inventories[node] = {
            "resource_provider_generation": world.provider_generation(node),
            "inventories": {name: inventory(world) for name in names},
        }
    allocations = {}
    if world.chance(60):
        chosen = world.some(world.consumers, 2)
        allocations = {consumer: _entry(world, consumer, minor, can_be_empty=True) for consumer in chosen}
    body = {"inventories": inventories, "allocations": allocations}
    # By the new policy defaults only a service may reshape.
    roles = {"x-roles": "admin" if world.chance(3) else "admin,service"}
    return world.request("POST", "/reshaper", minor, body, headers=roles)


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


def aggregates(world: World, node: str) -> Request:
    """Set a provider's aggregates, in the form of some microversion."""
    members = world.some(world.aggregates, 2) if world.chance(95) else []
    world.aggregates_of[node] = members
    minor = world.minor(1)
    body: Any = members
    if minor >= 19:
        body = {"resource_provider_generation": world.provider_generation(node), "aggregates": members}
    return world.request("PUT", f"/resource_providers/{node}/aggregates", minor, body)


def _create_provider(world: World) -> Request:
    minor = world.minor()
    node = world.new_uuid() if world.chance(88) else world.provider()
    # Never without a uuid: each server would choose its own, and the two could not agree again.
    body: dict[str, Any] = {"name": _name(world), "uuid": node.replace("-", "") if world.chance(10) else node}
    if minor >= 14 and world.chance(60):
        body["parent_provider_uuid"] = world.one([world.provider(), world.provider(), None, node])
    if node not in world.providers:
        world.providers.append(node)
    return world.request("POST", "/resource_providers", minor, body)


def _update_provider(world: World) -> Request:
    minor = world.minor()
    node = world.provider()
    body: dict[str, Any] = {"name": _name(world)}
    if minor >= 14 and world.chance(75):
        body["parent_provider_uuid"] = world.one([world.provider(), world.provider(), None, node])
    return world.request("PUT", f"/resource_providers/{node}", minor, body)


def _name(world: World) -> str:
    if world.chance(25):
        return f"node-{world.random.randint(0, len(world.providers))}"
    return world.one(("ürsula ☃", "a b", "node")) + str(world.random.randint(0, 99))


def _delete_provider(world: World) -> Request:
    return world.request("DELETE", f"/resource_providers/{world.provider()}", world.minor())


def _put_traits(world: World) -> Request:
    node = world.provider()
    traits = world.random.sample(world.traits, world.random.randint(0, 2))
    if world.chance(8):
        traits.append(SHARES)
    if world.chance(3):
        traits.append(UNKNOWN_TRAIT)
    body = {"resource_provider_generation": world.provider_generation(node), "traits": traits}
    return world.request("PUT", f"/resource_providers/{node}/traits", world.minor(6), body)


def _delete_traits(world: World) -> Request:
    return world.request("DELETE", f"/resource_providers/{world.provider()}/traits", world.minor(6))


def _put_aggregates(world: World) -> Request:
    return aggregates(world, world.provider())


def _trait(world: World) -> Request:
    name = world.one([*world.traits, UNKNOWN_TRAIT, "CUSTOM_MORE"])
    return world.request(world.one(("PUT", "DELETE")), f"/traits/{name}", world.minor(5))


def _resource_class(world: World) -> Request:
    name = world.one([*world.classes, UNKNOWN_CLASS, "CUSTOM_MORE"])
    way = world.one((_post_class, _put_class, _rename_class, _delete_class))
    return way(world, name)


def _post_class(world: World, name: str) -> Request:
    return world.request("POST", "/resource_classes", world.minor(1), {"name": name})


def _put_class(world: World, name: str) -> Request:
    return world.request("PUT", f"/resource_classes/{name}", world.minor(7))


def _rename_class(world: World, name: str) -> Request:
    new = world.one([*world.classes, "CUSTOM_NEW"])
    return world.request("PUT", f"/resource_classes/{name}", world.minor(2, 6), {"name": new})


def _delete_class(world: World, name: str) -> Request:
    return world.request("DELETE", f"/resource_classes/{name}", world.minor(2, NEWEST))


WAYS = (
    (claim, 24),
    (claims, 10),
    (release, 5),
    (reshape, 8),
    (inventory_write, 20),
    (_create_provider, 6),
    (_update_provider, 8),
    (_delete_provider, 4),
    (_put_traits, 7),
    (_delete_traits, 1),
    (_put_aggregates, 5),
    (_trait, 3),
    (_resource_class, 4),
)

"""Writes to allocations: PUT and POST in every form they have had, DELETE, and the reshaper."""

from typing import Any

from tests.differential.generate.inventories import inventory
from tests.differential.generate.world import CONSUMER_TYPES, PROJECTS, USERS, World
from tests.differential.requests import Request


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

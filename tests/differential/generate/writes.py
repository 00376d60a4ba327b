"""Writes to providers, traits, aggregates and resource classes, and the choice among all writes."""

from typing import Any

from tests.clouds import SHARES
from tests.differential.generate.claims import claim, claims, release, reshape
from tests.differential.generate.cloud import aggregates
from tests.differential.generate.inventories import inventory_write
from tests.differential.generate.world import NEWEST, UNKNOWN_CLASS, UNKNOWN_TRAIT, World
from tests.differential.requests import Request


def write(world: World) -> Request:
    """Return a write to any route."""
    ways, weights = zip(*WAYS, strict=True)
    return world.random.choices(ways, weights)[0](world)


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

"""Reads of every route except candidates."""

from collections.abc import Iterator
from urllib.parse import quote

from tests.differential.generate import filters
from tests.differential.generate.world import CONSUMER_TYPES, PROJECTS, UNKNOWN_CLASS, UNKNOWN_TRAIT, USERS, World
from tests.differential.requests import Request

OF_PROVIDER = ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations")


def read(world: World) -> Request:
    """Read something from any route."""
    return world.random.choices(WAYS, (35, 20, 8, 12, 10, 5, 8, 2))[0](world)


def whole_state(world: World) -> Iterator[Request]:
    """Read everything that the round may have changed, but only some pages of each provider."""
    yield world.request("GET", "/resource_providers", 39)
    for node in world.providers:
        parts = world.some(OF_PROVIDER, 2)
        yield from (world.request("GET", f"/resource_providers/{node}{part}", 39) for part in parts)
    for consumer in world.consumers:
        yield world.request("GET", f"/allocations/{consumer}", 39)
    for project in PROJECTS:
        yield world.request("GET", "/usages", 39, query=(("project_id", project),))
    yield world.request("GET", "/traits", 39, query=(("associated", "true"),))
    yield world.request("GET", "/traits", 39, query=(("name", "startswith:CUSTOM"),))
    yield world.request("GET", "/resource_classes", 39)


def provider_list(world: World) -> Request:
    minor = world.minor()
    # since, percentage, key and value of each row
    rows = (
        (0, 8, "name", lambda: f"node-{world.random.randint(0, len(world.providers))}"),
        (0, 8, "uuid", world.provider),
        (3, 30, "member_of", lambda: filters.member_of(world, minor)),
        (24, 10, "member_of", lambda: filters.member_of(world, minor)),
        (4, 45, "resources", lambda: filters.resources(world, 2)),
        (14, 25, "in_tree", world.provider),
        (18, 45, "required", lambda: filters.required(world, minor)),
        (18, 10, "required", lambda: filters.required(world, minor)),
    )
    pairs = [(key, value()) for since, percent, key, value in rows if minor >= since and world.chance(percent)]
    if world.chance(4):
        pairs.append(_out_of_place(world))
    if world.chance(5):
        pairs = filters.with_one_oddly_written(world, pairs)
    return world.request("GET", "/resource_providers", minor, query=tuple(pairs))


def _out_of_place(world: World) -> tuple[str, str]:
    return world.one(
        (
            ("resources", world.one(("", "VCPU", "VCPU:0", "VCPU:x", "VCPU:1,"))),
            ("required", world.one(("", ",", "!", "in:", "x"))),
            ("member_of", world.one(("", "in:", "!in:", "x", f"{world.new_uuid()},{world.new_uuid()}"))),
            ("in_tree", world.one(("", "x", world.new_uuid().replace("-", ""), world.new_uuid()))),
            ("uuid", world.one(("", "x", world.new_uuid().upper()))),
            ("root_required", "HW_NUMA_ROOT"),
            ("limit", "1"),
            ("resources1", "VCPU:1"),
        )
    )


def _part_of_provider(world: World) -> Request:
    return world.request("GET", f"/resource_providers/{world.provider()}{world.one(OF_PROVIDER)}", world.minor())


def _one_inventory(world: World) -> Request:
    node = world.provider()
    return world.request("GET", f"/resource_providers/{node}/inventories/{world.resource_class()}", world.minor())


def _allocations(world: World) -> Request:
    consumer = world.one(world.consumers) if world.chance(90) else world.one((world.new_uuid(), "x"))
    return world.request("GET", f"/allocations/{consumer}", world.minor())


def _usages(world: World) -> Request:
    minor = world.minor(9)
    pairs = [("project_id", world.one((*PROJECTS, "nobody")))]
    if world.chance(40):
        pairs.append(("user_id", world.one((*USERS, "nobody"))))
    if minor >= 38 and world.chance(50):
        pairs.append(("consumer_type", world.one((*CONSUMER_TYPES, "all", "unknown", "ALL", "UNKNOWN", "Instance"))))
    if world.chance(5):
        pairs = world.one(([], [("project_id", "")], [("project_id", "x" * 256)], [*pairs, ("extra", "1")]))
    return world.request("GET", "/usages", minor, query=tuple(pairs))


def _names(world: World) -> Request:
    minor = world.minor(2)
    if world.chance(50):
        name = world.one([*world.classes, UNKNOWN_CLASS])
        return world.request("GET", world.one(("/resource_classes", f"/resource_classes/{name}")), minor)
    return world.request("GET", f"/traits/{world.one([*world.traits, UNKNOWN_TRAIT])}", minor)


def _traits(world: World) -> Request:
    names = ",".join(world.some(world.traits, 3))
    pairs: list[tuple[str, str]] = []
    if world.chance(70):
        value = world.one(
            (f"in:{names}", "startswith:CUSTOM_", "startswith:HW_N", names, "in:", "like:x", f"IN:{names}")
        )
        pairs.append(("name", value))
    if world.chance(40):
        pairs.append(("associated", world.one(("true", "false", "True", "FALSE", "1", ""))))
    return world.request("GET", "/traits", world.minor(6), query=tuple(pairs))


def _root(world: World) -> Request:
    return world.request("GET", world.one(("/", "/" + quote("ü"), "/resource_providers/")), world.minor())


WAYS = (provider_list, _part_of_provider, _one_inventory, _allocations, _usages, _names, _traits, _root)

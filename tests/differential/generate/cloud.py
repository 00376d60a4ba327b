"""The initial cloud of a round: nested trees, sharing providers, claims that sometimes do not fit."""

from collections.abc import Iterator

from tests.clouds import SHARES
from tests.differential.generate.world import World
from tests.differential.generate.writes import aggregates, claim, inventory
from tests.differential.requests import Generation, Request

DEEPEST = 4


def cloud(world: World) -> Iterator[Request]:
    """Create a cloud of a few trees, some of whose nodes have inventories, traits and aggregates."""
    yield from custom_names(world)
    for _ in range(world.random.randint(1, 4)):
        yield from _tree(world)
    for _ in range(world.random.choices((0, 1, 2), (45, 35, 20))[0]):
        yield from _sharing_provider(world)
    for _ in range(world.random.randint(0, 5)):
        yield claim(world)


def custom_names(world: World) -> Iterator[Request]:
    """Create the custom classes and traits of the round."""
    for name in world.classes:
        if name.startswith("CUSTOM_"):
            yield world.request("PUT", f"/resource_classes/{name}", world.minor(7))
    for name in world.traits:
        if name.startswith("CUSTOM_"):
            yield world.request("PUT", f"/traits/{name}", world.minor(6))


def _tree(world: World) -> Iterator[Request]:
    size = world.random.choices((1, 2, 3, 4, 5, 7), (25, 15, 20, 20, 12, 8))[0]
    depths: dict[str, int] = {}
    for _ in range(size):
        parent = world.one([node for node in depths if depths[node] < DEEPEST]) if depths else None
        node = yield from _provider(world, parent)
        depths[node] = depths[parent] + 1 if parent else 1
        yield from _content(world, node, has_aggregates=world.chance(45 if parent is None else 15))


def _sharing_provider(world: World) -> Iterator[Request]:
    """Create a sharing provider; few are not roots, because the reference fails on those."""
    parent = world.one(world.providers) if world.chance(15) else None
    node = yield from _provider(world, parent)
    yield from _content(world, node, has_aggregates=world.chance(90), more_traits=[SHARES])


def _provider(world: World, parent: str | None) -> Iterator[Request]:
    node = world.new_uuid()
    body = {"name": f"node-{len(world.providers)}", "uuid": node}
    if parent:
        body["parent_provider_uuid"] = parent
    world.providers.append(node)
    world.parents[node] = parent
    yield world.request("POST", "/resource_providers", world.minor(14 if parent else 0), body)
    return node


def _content(
    world: World, node: str, *, has_aggregates: bool, more_traits: tuple[str, ...] | list[str] = ()
) -> Iterator[Request]:
    path = f"/resource_providers/{node}"
    generation = Generation("provider", node)
    classes = world.random.sample(world.classes, min(world.random.randint(0, 3), len(world.classes)))
    if classes:
        world.inventories[node] = classes
        body = {"resource_provider_generation": generation, "inventories": {name: inventory(world) for name in classes}}
        yield world.request("PUT", f"{path}/inventories", world.minor(), body)
    traits = [*world.random.sample(world.traits, world.random.choices((0, 1, 2), (50, 35, 15))[0]), *more_traits]
    if traits:
        world.traits_of[node] = traits
        body = {"resource_provider_generation": generation, "traits": traits}
        yield world.request("PUT", f"{path}/traits", world.minor(6), body)
    if has_aggregates:
        yield aggregates(world, node)

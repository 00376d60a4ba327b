"""Query values that filter providers, in every form they have had."""

from collections.abc import Sequence

from tests.differential.generate.world import World

Nodes = Sequence[str]
Pairs = list[tuple[str, str]]


def resources(world: World, most: int, nodes: Nodes = ()) -> str:
    """Return resource classes with amounts."""
    names = list(dict.fromkeys(world.resource_class(nodes) for _ in range(world.random.randint(1, most))))
    return ",".join(f"{name}:{world.amount()}" for name in names)


def required(world: World, minor: int, nodes: Nodes = ()) -> str:
    """Return required traits, with forbidden and alternative ones where the microversion supports them."""
    if minor >= 39 and world.chance(30):
        return "in:" + ",".join(_traits(world, 3, nodes))
    may_forbid = minor >= 22 or world.chance(2)
    return ",".join(("!" if may_forbid and world.chance(30) else "") + name for name in _traits(world, 2, nodes))


def root_required(world: World, nodes: Nodes = ()) -> str:
    """Return traits for a root, some of them forbidden."""
    return ",".join(("!" if world.chance(50) else "") + name for name in _traits(world, 2, nodes))


def member_of(world: World, minor: int, nodes: Nodes = ()) -> str:
    """Return an aggregate, several alternatives, or forbidden ones."""
    members = list(dict.fromkeys(world.aggregate(nodes) for _ in range(world.random.randint(1, 2))))
    text = members[0] if len(members) == 1 and world.chance(60) else "in:" + ",".join(members)
    return "!" + text if (minor >= 32 and world.chance(35)) or world.chance(1) else text


def with_one_oddly_written(world: World, pairs: Pairs) -> Pairs:
    """Return a query's parameters, one of them in an unusual form."""
    if not pairs:
        return pairs
    index = world.random.randrange(len(pairs))
    key, value = pairs[index]
    return [*pairs[:index], (key, _oddly_written(world, value)), *pairs[index + 1 :]]


def _oddly_written(world: World, value: str) -> str:
    """Return a value as somebody might write it who has not read the guide."""
    return world.one(
        (
            value + world.one((" ", "  ", "\t", ",", ":")),
            world.one((" ", ",", "!", "in:")) + value,
            value.replace(",", ", "),
            value.replace(":", ": "),
            value.replace(":", " :"),
            value.replace(":", ":+"),
            value.replace(":", ":0"),
            value.replace("-", ""),
            value.lower(),
            value.upper(),
            value.replace(":", ":1_0"),
            value.replace(":", ":9999999999999999999"),
            value + "," + value,
        )
    )


def _traits(world: World, most: int, nodes: Nodes) -> list[str]:
    return list(dict.fromkeys(world.trait(nodes) for _ in range(world.random.randint(1, most))))

"""Queries for allocation candidates, with every parameter at every microversion."""

from tests.differential.generate import filters
from tests.differential.generate.world import World
from tests.differential.requests import Request

Pairs = filters.Pairs


def candidates(world: World) -> Request:
    """GET candidates, mostly such as one tree can provide."""
    minor = world.minor(10) if world.chance(97) else world.random.randint(0, 39)
    nodes = world.tree()
    suffixes = _suffixes(world, minor)
    resourceless = [suffix for suffix in suffixes if minor >= 36 and world.chance(20)]
    pairs: Pairs = []
    if not suffixes or world.chance(65):
        pairs += _group(world, minor, nodes, has_resources=world.chance(99))
    for suffix in suffixes:
        # A suffixed group is served by one provider.
        server = world.some(nodes, 1) if nodes else []
        group = _group(world, minor, server, has_resources=suffix not in resourceless)
        pairs += [(key + suffix, value) for key, value in group]
    pairs += _request_wide(world, minor, suffixes, resourceless)
    if world.chance(10):
        world.random.shuffle(pairs)
    if world.chance(3):
        pairs.append(_out_of_place(world))
    if world.chance(5):
        pairs = filters.with_one_oddly_written(world, pairs)
    return Request("GET", "/allocation_candidates", f"1.{minor}", tuple(pairs))


def _suffixes(world: World, minor: int) -> list[str]:
    if minor < 25:
        return []
    # Each group multiplies the reference's work.
    counts = (0, 1, 2, 3, 4) if len(world.providers) < 10 else (0, 1, 2)
    count = world.random.choices(counts, (25, 25, 28, 15, 7)[: len(counts)])[0]
    numbers = [str(number) for number in range(1, 6)]
    names = ["_A", "_NIC", "-b", "_" + world.new_uuid(), "x", "_Z9"]
    return world.random.sample(numbers if minor < 33 or world.chance(50) else names, count)


def _group(world: World, minor: int, nodes: list[str], *, has_resources: bool) -> Pairs:
    pairs: Pairs = []
    if has_resources:
        pairs.append(("resources", filters.resources(world, 2 if len(nodes) == 1 else 3, nodes)))
    if minor >= 17 and world.chance(25 if has_resources else 75):
        pairs.append(("required", filters.required(world, minor, nodes)))
        if minor >= 39 and world.chance(20):
            pairs.append(("required", filters.required(world, minor, nodes)))
    if minor >= 21 and world.chance(16 if has_resources else 35):
        pairs.append(("member_of", filters.member_of(world, minor, nodes)))
        if minor >= 24 and world.chance(20):
            pairs.append(("member_of", filters.member_of(world, minor, nodes)))
    if minor >= 31 and world.chance(9):
        pairs.append(("in_tree", world.one(nodes) if nodes and world.chance(70) else world.provider()))
    return pairs


def _request_wide(world: World, minor: int, suffixes: list[str], resourceless: list[str]) -> Pairs:
    pairs: Pairs = []
    if minor >= 16 and world.chance(22):
        pairs.append(("limit", world.one(("1", "2", "3", "5", "10", "1000"))))
    if minor >= 25 and world.chance(97 if len(suffixes) > 1 else 15):
        pairs.append(("group_policy", world.one(("none", "isolate"))))
    if minor >= 35 and world.chance(15):
        pairs.append(("root_required", filters.root_required(world, world.tree()[:1])))
    if minor >= 36 and suffixes:
        pairs += _subtrees(world, suffixes, resourceless)
    return pairs


def _subtrees(world: World, suffixes: list[str], resourceless: list[str]) -> Pairs:
    pairs: Pairs = []
    if resourceless and world.chance(97):
        others = [suffix for suffix in suffixes if suffix not in resourceless]
        chosen = [*resourceless, *world.random.sample(others, world.random.randint(0, len(others)))]
        pairs.append(("same_subtree", ",".join(chosen)))
    if world.chance(25):
        pairs.append(("same_subtree", ",".join(world.some(suffixes, len(suffixes)))))
    return pairs


def _out_of_place(world: World) -> tuple[str, str]:
    """Return a parameter that is invalid at most microversions, or always."""
    return world.one(
        (
            ("limit", world.one(("0", "-1", "x", "", "1.5", "٣"))),
            ("group_policy", world.one(("all", "", "None"))),
            ("resources", world.one(("VCPU", "VCPU:0", "VCPU:-1", "VCPU:1,", "", ":", "VCPU:x", "VCPU:1:2", "vcpu:1"))),
            ("required", world.one(("", ",", "!", "in:", "HW_CPU_X86_AVX2,", "in:HW_CPU_X86_AVX2,!CUSTOM_RED", "x"))),
            ("member_of", world.one(("", "in:", "!", "!in:", "x", f"{world.new_uuid()},{world.new_uuid()}"))),
            ("in_tree", world.one(("", "x", world.new_uuid().replace("-", "")))),
            ("root_required", world.one(("", "in:HW_NUMA_ROOT", "HW_NUMA_ROOT,!HW_NUMA_ROOT"))),
            ("root_required", "HW_NUMA_ROOT"),
            ("same_subtree", world.one(("", "1,", ",", "_NOWHERE", "1"))),
            ("resources1", "VCPU:1"),
            ("resources01", "VCPU:1"),
            ("resources_" + "x" * world.one((63, 64)), "VCPU:1"),
            ("resourcesä", "VCPU:1"),
            ("required7", "HW_NUMA_ROOT"),
            ("member_of_x", world.new_uuid()),
            ("extra", "1"),
        )
    )

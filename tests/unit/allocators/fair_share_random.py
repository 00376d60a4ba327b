"""Random trees, states and events for the tests of fair shares."""

import random
from fractions import Fraction

from placement.allocators.fair_share.tree import Branch, Leaf
from tests.unit.allocators.fair_share_trees import branches_of, leaf_paths

WEIGHTS = (1, 1, 1, 2, 3, 0.5, 0.1, Fraction(1, 3), 50)
CLASSES = ("cpu", "gpu", "memory")


def random_tree(rng: random.Random, depth: int = 3, name: str = "root", *, limited: bool = False) -> Branch:
    parts: list[Branch | Leaf] = []
    for number in range(rng.choice([0, 1, 2, 2, 3, 4]) if depth < 3 else rng.randint(1, 4)):
        if depth > 1 and rng.random() < 0.5:
            parts.append(random_tree(rng, depth - 1, f"b{number}", limited=limited))
        else:
            parts.append(Leaf(f"l{number}", rng.choice(WEIGHTS)))
    rng.shuffle(parts)
    limit = {name: rng.randint(0, 30) for name in CLASSES if rng.random() < 0.5} if limited and depth < 3 else {}
    return Branch(name, tuple(parts), rng.choice(WEIGHTS), limit=limit)


def limits_of(root: Branch) -> dict[str, dict[str, int]]:
    return {path: dict(branch.limit) for path, branch in branches_of(root) if branch.limit}


def random_totals(rng: random.Random) -> dict[str, int]:
    names = CLASSES[: rng.randint(1, len(CLASSES))]
    return {name: rng.choice([0, 6, 10, 12, 30, 37, 200, 1004]) for name in names}


def random_amounts(rng: random.Random, classes, most: int) -> dict[str, int]:
    return {name: rng.randint(0, most) for name in classes if rng.random() < 0.7}


def random_usage(rng: random.Random, root: Branch, totals) -> dict[str, dict[str, int]]:
    most = rng.choice([1, 3, 5, 12, 64])
    return {path: random_amounts(rng, totals, most) for path in leaf_paths(root)}


def random_tasks(rng: random.Random, root: Branch, totals) -> dict[str, dict[str, int]]:
    """Return the task that each leaf waits for; some wait for none. A few flavors, as in real queues."""
    most = rng.choice([3, 3, 8, 64])
    flavours = [random_amounts(rng, totals, most) for _flavour in range(rng.randint(1, 4))]
    return {path: rng.choice(flavours) if rng.random() < 0.8 else {} for path in leaf_paths(root)}

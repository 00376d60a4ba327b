"""Random trees, states and events for the tests of fair shares."""

import random
from fractions import Fraction

from placement.allocators.fair_share.tree import Branch, Leaf, leaf_paths

WEIGHTS = (1, 1, 1, 2, 3, 0.5, 0.1, Fraction(1, 3), 50)
CLASSES = ("cpu", "gpu", "memory")


def random_tree(rng: random.Random, depth: int = 3, name: str = "root") -> Branch:
    parts: list[Branch | Leaf] = []
    for number in range(rng.choice([0, 1, 2, 2, 3, 4]) if depth < 3 else rng.randint(1, 4)):
        if depth > 1 and rng.random() < 0.5:
            parts.append(random_tree(rng, depth - 1, f"b{number}"))
        else:
            parts.append(Leaf(f"l{number}", rng.choice(WEIGHTS)))
    rng.shuffle(parts)
    return Branch(name, tuple(parts), rng.choice(WEIGHTS))


def random_totals(rng: random.Random) -> dict[str, int]:
    names = CLASSES[: rng.randint(1, len(CLASSES))]
    return {name: rng.choice([0, 6, 10, 12, 30, 37]) for name in names}


def random_amounts(rng: random.Random, classes, most: int) -> dict[str, int]:
    return {name: rng.randint(0, most) for name in classes if rng.random() < 0.7}


def random_usage(rng: random.Random, root: Branch, totals) -> dict[str, dict[str, int]]:
    most = rng.choice([1, 3, 5, 12])
    return {path: random_amounts(rng, totals, most) for path in leaf_paths(root)}


def random_tasks(rng: random.Random, root: Branch, totals, most: int = 3) -> dict[str, dict[str, int]]:
    return {path: random_amounts(rng, totals, most) if rng.random() < 0.8 else {} for path in leaf_paths(root)}

"""Trees for the tests of fair shares: those of Volcano's design of HDRF and of the vectors HD-nn, and random ones."""

import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch, Leaf, in_order, joined

Trees = dict[str, object]


def tree(name: str, parts: Trees, weight=1) -> Branch:
    """Build a tree from ``name`` or ``(name, weight)`` -> parts, or the class (or task) that a leaf wants."""
    made = []
    for key, inner in parts.items():
        part, part_weight = key if isinstance(key, tuple) else (key, 1)
        made.append(tree(part, inner, part_weight) if isinstance(inner, dict) else Leaf(part, part_weight))
    return Branch(name, tuple(made), weight)


def tasks(parts: Trees, above: str = "n") -> dict[str, dict[str, int]]:
    """Return the task of each leaf of such a tree, by path: each letter of a word is one unit."""
    found = {}
    for key, inner in parts.items():
        path = f"{above}/{key[0] if isinstance(key, tuple) else key}"
        if isinstance(inner, dict):
            found |= tasks(inner, path)
        else:
            found[path] = dict.fromkeys(inner, 1)
    return found


# The first tree of the design: children with complementary dominant resources. c is CPU, g is GPU.
COMPLEMENTARY = {"n1": "g", "n2": {"n21": "c", "n22": "g"}}
# The second tree of the design: a node saturated in one resource.
SATURATED = {"n1": "c", "n2": "c", "n3": {"n31": "c", "n32": "g"}, "n4": "g"}
# The tree from Volcano's own test.
RESCALING = {("sci", 50): "cg", ("eng", 50): {("dev", 10): "c", ("prod", 10): "g"}}


def leaf_paths(part: Branch | Leaf, above: str = "") -> Iterator[str]:
    """Yield the paths of all leaves in natural order."""
    path = joined(above, part.name)
    if isinstance(part, Leaf):
        yield path
    else:
        for inner in in_order(part.parts):
            yield from leaf_paths(inner, path)


def branches_of(branch: Branch, above: str = "") -> Iterator[tuple[str, Branch]]:
    """Yield all branches with their paths, parents before children."""
    path = joined(above, branch.name)
    yield path, branch
    for inner in branch.parts:
        if isinstance(inner, Branch):
            yield from branches_of(inner, path)


def plus(amounts: Mapping[str, int], more: Mapping[str, int], sign: int = 1) -> dict[str, int]:
    return {name: amounts.get(name, 0) + sign * more.get(name, 0) for name in {*amounts, *more}}


def end_and_serve(shares: FairShares, ends: Sequence[str], tasks: Mapping[str, Mapping[str, int]], *, steps: int = 200):
    """End one task of each of these leaves in turn, and give what is free to whoever is first."""
    for step in range(steps):
        leaf = ends[step % len(ends)]
        if any(shares.usage(leaf).values()):
            shares.use(leaf, plus(shares.usage(leaf), tasks[leaf], -1))
        winner = shares.first()
        assert winner is not None
        shares.use(winner, plus(shares.usage(winner), tasks[winner]))


def random_promises(rng: random.Random, classes: str, *, most: int, share: float) -> dict[str, dict[str, int]]:
    """Return a valid setting by an operator: guarantee, deserved amount and limit, each at least the one before."""
    promises: dict[str, dict[str, int]] = {"guarantee": {}, "deserved": {}, "limit": {}}
    for name in classes:
        for promise, amount in zip(promises.values(), sorted(rng.randint(0, most) for _ in promises), strict=True):
            if rng.random() < share:
                promise[name] = amount
    return promises


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

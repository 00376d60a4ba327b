"""The trees of Volcano's design of HDRF and of the vectors HD-nn, with weights, and the task that each leaf wants."""

from collections.abc import Iterator

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

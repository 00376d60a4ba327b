"""Entitlements by brute force: the water level is one of those at which some queue is full, and all are tried."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

from placement.allocators import exact
from placement.allocators.fair_share.tree import Branch, Leaf, joined
from tests.unit.allocators.fair_share_trees import leaf_paths


def entitlements(
    root: Branch, total: int, used: Mapping[str, int], waiting: Mapping[str, int], name: str
) -> dict[str, Fraction]:
    """Return the entitlement of each node to one class."""
    found = {root.name: Fraction(total)}

    def visit(branch: Branch, path: str) -> None:
        bounds = {part.name: bounds_of(part, joined(path, part.name), used, waiting, name) for part in branch.parts}
        weights = {part.name: exact(part.weight) for part in branch.parts}
        levels = sorted({bound / weights[part] for part in bounds for bound in bounds[part]} | {Fraction(0)})

        def at(level: Fraction) -> dict[str, Fraction]:
            return {part: min(max(level * weights[part], low), high) for part, (low, high) in bounds.items()}

        for low, high in pairwise(levels):
            below, above = sum(at(low).values()), sum(at(high).values())
            if below <= found[path] < above:
                level = low + (high - low) * (found[path] - below) / (above - below)
                break
        else:
            level = levels[0] if found[path] < sum(at(levels[0]).values()) else levels[-1]
        for part in branch.parts:
            inner = joined(path, part.name)
            found[inner] = at(level)[part.name]
            if isinstance(part, Branch):
                visit(part, inner)

    visit(root, root.name)
    return found


def bounds_of(part: Branch | Leaf, path: str, used, waiting, name: str) -> tuple[Fraction, Fraction]:
    asked = asked_by(part, path, used, waiting, name)
    if isinstance(part, Leaf):
        return Fraction(0), Fraction(asked)
    if name in part.deserved:
        return Fraction(min(asked, part.deserved[name])), Fraction(min(asked, part.deserved[name]))
    return Fraction(guaranteed_to(part, path, used, waiting, name)), Fraction(asked)


def guaranteed_to(part: Branch | Leaf, path: str, used, waiting, name: str) -> int:
    """Return the least that a queue gets: its own guarantee, or what those inside it are guaranteed."""
    if isinstance(part, Leaf):
        return 0
    inside = sum(guaranteed_to(inner, joined(path, inner.name), used, waiting, name) for inner in part.parts)
    return min(asked_by(part, path, used, waiting, name), max(inside, part.guarantee.get(name, 0)))


def asked_by(part: Branch | Leaf, path: str, used, waiting, name: str) -> int:
    if isinstance(part, Leaf):
        return used.get(path, 0) + waiting.get(path, 0)
    together = sum(asked_by(inner, joined(path, inner.name), used, waiting, name) for inner in part.parts)
    return min(together, part.limit.get(name, together))


def amount_in(root: Branch, path: str, used: Mapping[str, int]) -> int:
    return sum(used.get(leaf, 0) for leaf in leaf_paths(root) if f"{leaf}/".startswith(f"{path}/"))

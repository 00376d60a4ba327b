"""What each node is entitled to, class by class and in real amounts, and what follows for the order of service.

A branch divides its entitlement among its parts by water-filling: every part's level rises in proportion to its weight
until the part has what it may have, and the remainder goes to the others. A part starts at its guarantee and stops at
its limit. A deserved amount set by the operator replaces the weight. Everybody is taken to want more of each class that
it uses or waits for; who neither uses nor waits for a class leaves its part to the others.

Orders, gates and reclaiming all follow from this: who holds less of its entitlement is served before who holds more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from placement.allocators import exact
from placement.allocators.fair_share.tree import NO_LIMIT, Amounts, BranchNode, Node

BEGUN = Fraction(1, 2)
"""The entitlement, for the order of service, of who is entitled to nothing: one unit is already too much.

Who wants some nevertheless counts as having that much beforehand, and so as having all that it is entitled to.
"""


ClassWeight = tuple[Fraction, Fraction]
"""What a part weighs in the order of service, in one class; and what fraction of it counts besides what it has."""


class Vessel(NamedTuple):
    """A part to fill in proportion to its weight, within a lower and an upper bound."""

    weight: Fraction
    least: int
    limit: int


def poured(amount: Fraction, vessels: Sequence[Vessel]) -> list[Fraction]:
    """Divide an amount so that each vessel gets the same per weight, within its bounds. O(vessels x log vessels).

    Every vessel gets its upper bound if the amount covers them all, and its lower bound if it does not cover those.
    """
    if sum([vessel.limit for vessel in vessels]) <= amount:
        return [Fraction(vessel.limit) for vessel in vessels]
    # Integers throughout: comparing thousands of fractions takes ten times as long.
    common = lcm(*{vessel.weight.denominator for vessel in vessels})
    weights = [vessel.weight.numerator * (common // vessel.weight.denominator) for vessel in vessels]
    # In this unit, every vessel's content per weight is a whole number.
    units = lcm(*{*weights})
    scale = units * amount.denominator
    remaining = amount.numerator * units - scale * sum([vessel.least for vessel in vessels])
    turns = []
    for vessel, weight in zip(vessels, weights, strict=True):
        if vessel.limit > vessel.least:
            turns += [(vessel.least * (scale // weight), weight), (vessel.limit * (scale // weight), -weight)]
    level = rising = 0
    for at, weight in sorted(turns):
        if remaining <= (at - level) * rising:
            break
        remaining -= (at - level) * rising
        level, rising = at, rising + weight
    # What each gets per weight, unless that is out of its bounds, is this fraction.
    numerator, denominator = level, scale
    if rising and remaining > 0:
        numerator, denominator = level * rising + remaining, rising * scale
    parts = []
    for vessel, weight in zip(vessels, weights, strict=True):
        part = numerator * weight
        is_within = vessel.least * denominator < part < vessel.limit * denominator
        bound = vessel.least if part <= vessel.least * denominator else vessel.limit
        parts.append(Fraction(part, denominator) if is_within else Fraction(min(bound, vessel.limit)))
    return parts


class Entitlements:
    """The entitlements of a tree's nodes, computed lazily; a leaf is entitled to its ``wanted_classes`` alone."""

    def __init__(
        self,
        nodes: dict[str, Node],
        totals: Amounts,
        wanted_classes: Mapping[str, Collection[str]],
        *,
        classes: Iterable[str],
    ) -> None:
        self.classes = tuple(classes)
        self._totals = totals
        self._nodes = nodes
        self._asked: dict[str, dict[str, int]] = {}
        """What a node may get at most, by path and class."""
        self._guaranteed: dict[str, dict[str, int]] = {}
        for path, node in reversed(nodes.items()):
            self._asked[path], self._guaranteed[path] = at_most, at_least = {}, {}
            for name in self.classes:
                if isinstance(node, BranchNode):
                    together = sum([self._asked[part.path][name] for part in node.parts])
                    inside = sum([self._guaranteed[part.path][name] for part in node.parts])
                    at_most[name] = min(together, node.source.limit.get(name, together))
                    # What is guaranteed to queues inside a queue is guaranteed to the queue, up to its limit.
                    at_least[name] = min(at_most[name], max(inside, node.source.guarantee.get(name, 0)))
                else:
                    at_most[name], at_least[name] = NO_LIMIT if name in wanted_classes[path] else 0, 0
        root = next(iter(nodes))
        self._entitled = {root: {name: Fraction(totals[name]) for name in self.classes}}

    def amounts(self, path: str) -> Mapping[str, Fraction]:
        """Return class -> the amount a node is entitled to."""
        if path not in self._entitled:
            above = self._nodes[path].above
            assert above is not None
            entitled = self.amounts(above.path)
            for part in above.parts:
                self._entitled[part.path] = {}
            for name in self.classes:
                portions = poured(entitled[name], [self._vessel(part, name) for part in above.parts])
                for part, amount in zip(above.parts, portions, strict=True):
                    self._entitled[part.path][name] = amount
        return self._entitled[path]

    def _vessel(self, part: Node, name: str) -> Vessel:
        weight, bound = exact(part.source.weight), self._asked[part.path][name]
        deserved = part.source.deserved.get(name) if isinstance(part, BranchNode) else None
        if deserved is not None:
            return Vessel(weight, min(bound, deserved), min(bound, deserved))
        return Vessel(weight, self._guaranteed[part.path][name], bound)

    def class_weights(self, branch: BranchNode) -> dict[Node, list[ClassWeight]]:
        """Return what the parts of a branch weigh in the order of service, class by class; {} if nothing is promised.

        A part with a promise weighs as much as if its entitlement had come from a weight: who holds the same fraction
        of what it is entitled to comes at the same turn.
        """
        columns = [self._weights_in(name, branch.parts) for name in self.classes]
        if not any(columns):
            return {}
        plain = [(exact(part.source.weight), Fraction(0)) for part in branch.parts]
        rows = zip(*[column or plain for column in columns], strict=True)
        return {part: [*row] for part, row in zip(branch.parts, rows, strict=True)}

    def _weights_in(self, name: str, parts: Sequence[Node]) -> list[ClassWeight]:
        """Return what parts weigh in one class; empty if nothing of it is promised or there is nothing."""
        deserved: dict[Node, Fraction] = {
            part: Fraction(part.source.deserved[name])
            for part in parts
            if isinstance(part, BranchNode) and name in part.source.deserved
        }
        promised = {part for part in parts if part in deserved or self._guaranteed[part.path][name]}
        total = self._totals[name]
        if not total or not promised:
            return []
        weights = {part: exact(part.source.weight) for part in parts}
        levels = [self.amounts(part.path)[name] / weight for part, weight in weights.items() if part not in promised]
        level = max(levels, default=Fraction(0))
        # Where all goes to promises, the level at which everybody would be without them serves for comparison.
        unit = level or Fraction(total) / sum(weights.values())
        in_class = []
        for part, weight in weights.items():
            amount = self.amounts(part.path)[name] if part in promised else level * weight
            amount = deserved.get(part, amount)  # Also if others left it less, or it wants nothing.
            beforehand = BEGUN / total if self._asked[part.path][name] else Fraction(0)
            in_class.append((amount / unit, Fraction(0)) if amount else (BEGUN / unit, beforehand))
        return in_class

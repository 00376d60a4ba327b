"""What each part of a tree is entitled to of each class: its guarantee, what it deserves, or its part by weight.

This is the question of those who should give something back, and is asked about one class at a time: the order in which
waiting tasks are served (``shares``) compares dominant shares, and scales them; here real amounts are compared.

What a branch is entitled to is divided among its parts like water poured into vessels: each rises as its weight says
until it has what it asks for, and the rest goes on to the others. A part begins at its guarantee, and ends at its
limit. Where an operator has written what a part deserves, that stands instead of its weight.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from placement.allocators.entries import exact
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Amounts, Branch, Leaf, branches_of, joined


class Vessel(NamedTuple):
    """A part that gets something: by its weight, but not less than one amount and not more than another."""

    weight: Fraction
    least: int
    most: int


def poured(amount: Fraction, vessels: Sequence[Vessel]) -> list[Fraction]:
    """Divide an amount: each gets the same for its weight, within its bounds. O(vessels x log of them).

    If there is more than everybody can take, all get their most; if there is less than the least together, the least.

    >>> [str(part) for part in poured(Fraction(12), [Vessel(Fraction(1), 0, 2), Vessel(Fraction(1), 0, 99)])]
    ['2', '10']
    """
    if sum([one.most for one in vessels]) <= amount:
        return [Fraction(one.most) for one in vessels]
    numerator, denominator, weights = _level(amount, vessels)
    found = []
    for one, weight in zip(vessels, weights, strict=True):
        part = numerator * weight
        is_within = one.least * denominator < part < one.most * denominator
        bound = one.least if part <= one.least * denominator else one.most
        found.append(Fraction(part, denominator) if is_within else Fraction(min(bound, one.most)))
    return found


def _level(amount: Fraction, vessels: Sequence[Vessel]) -> tuple[int, int, list[int]]:
    """Return how much each gets for a weight of 1, as numerator and denominator, and the weights as whole numbers.

    Whole numbers throughout: thousands of fractions take ten times as long to compare.
    """
    common = lcm(*{one.weight.denominator for one in vessels})
    weights = [one.weight.numerator * (common // one.weight.denominator) for one in vessels]
    # What a vessel has for its weight is a multiple of the unit of all of them.
    units = lcm(*{*weights})
    scale = units * amount.denominator
    left = amount.numerator * units - scale * sum([one.least for one in vessels])
    turns = []
    for one, weight in zip(vessels, weights, strict=True):
        if one.most > one.least:
            turns += [(one.least * (scale // weight), weight), (one.most * (scale // weight), -weight)]
    level = rising = 0
    for at, weight in sorted(turns):
        if left <= (at - level) * rising:
            break
        left -= (at - level) * rising
        level, rising = at, rising + weight
    if rising and left > 0:
        return level * rising + left, rising * scale, weights
    return level, scale, weights


class Entitlements:
    """What the nodes of a tree are entitled to, worked out from the root down to where somebody asks.

    Args:
        shares: the tree, and what is used.
        classes: the classes in question.
        waiting: leaf -> how much more it asks for, all that it waits for. Unless given, the task it waits for.
    """

    def __init__(
        self, shares: FairShares, classes: Iterable[str], *, waiting: Mapping[str, Amounts] | None = None
    ) -> None:
        self.classes = tuple(classes)
        self.used = shares.holdings()
        self._branches = dict(branches_of(shares.root))
        self._asked = self._demands(shares, waiting)
        totals = shares.totals()
        self._found = {shares.root.name: {name: Fraction(totals[name]) for name in self.classes}}

    def _demands(self, shares: FairShares, waiting: Mapping[str, Amounts] | None) -> dict[str, dict[str, int]]:
        """Return node -> what it has and asks for, as far as its limit lets it."""
        asked: dict[str, dict[str, int]] = {}
        for path in reversed(self.used):
            if path in self._branches:
                branch = self._branches[path]
                parts = [asked[joined(path, part.name)] for part in branch.parts]
                together = {name: sum([part[name] for part in parts]) for name in self.classes}
                asked[path] = {name: min(amount, branch.limit.get(name, amount)) for name, amount in together.items()}
            else:
                more = shares.wanted(path) if waiting is None else waiting.get(path, {})
                asked[path] = {name: self.used[path][name] + more.get(name, 0) for name in self.classes}
        return asked

    def of(self, path: str) -> Mapping[str, Fraction]:
        """Return class -> what a node is entitled to."""
        if path not in self._found:
            above = path.rpartition("/")[0]
            self._divide(above, self.of(above))
        return self._found[path]

    def _divide(self, path: str, amounts: Mapping[str, Fraction]) -> None:
        parts = self._branches[path].parts
        paths = [joined(path, part.name) for part in parts]
        for inner in paths:
            self._found[inner] = {}
        weighted = [(part, Fraction(exact(part.weight))) for part in parts]
        for name in self.classes:
            asked = [self._asked[inner][name] for inner in paths]
            vessels = [_vessel(one, name, much) for one, much in zip(weighted, asked, strict=True)]
            for inner, amount in zip(paths, poured(amounts[name], vessels), strict=True):
                self._found[inner][name] = amount

    def surplus(self, path: str) -> dict[str, int]:
        """Return class -> how many whole units a node has beyond what it is entitled to; 0 if it has less."""
        entitled = self.of(path)
        return {name: max(0, int(self.used[path][name] - entitled[name])) for name in self.classes}


def _vessel(weighted: tuple[Branch | Leaf, Fraction], name: str, asked: int) -> Vessel:
    """Return what a part, given with its weight, may get of a class."""
    part, weight = weighted
    if isinstance(part, Leaf):
        return Vessel(weight, 0, asked)
    if name in part.deserved:
        deserved = min(asked, part.deserved[name])
        return Vessel(weight, deserved, deserved)
    return Vessel(weight, min(asked, part.guarantee.get(name, 0)), asked)

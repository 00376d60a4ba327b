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

from placement.allocators.entries import exact
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, Branch, Leaf, branches_of, joined

NO_LIMIT = 1 << 80
"""More than anybody can ask for; stands for what is left where there is no limit."""

BEGUN = Fraction(1, 2)
"""The entitlement, for the order of service, of who is entitled to nothing: one unit is already too much.

Who wants some nevertheless counts as having that much beforehand, and so as having all that it is entitled to.
"""


class Vessel(NamedTuple):
    """A part to fill in proportion to its weight, within a lower and an upper bound."""

    weight: Fraction
    least: int
    most: int


def poured(amount: Fraction, vessels: Sequence[Vessel]) -> list[Fraction]:
    """Divide an amount so that each vessel gets the same per weight, within its bounds. O(vessels x log vessels).

    Every vessel gets its upper bound if the amount covers them all, and its lower bound if it does not cover those.

    >>> [str(part) for part in poured(Fraction(12), [Vessel(Fraction(1), 0, 2), Vessel(Fraction(1), 0, 99)])]
    ['2', '10']
    """
    if sum([vessel.most for vessel in vessels]) <= amount:
        return [Fraction(vessel.most) for vessel in vessels]
    numerator, denominator, weights = _level(amount, vessels)
    parts = []
    for vessel, weight in zip(vessels, weights, strict=True):
        part = numerator * weight
        is_within = vessel.least * denominator < part < vessel.most * denominator
        bound = vessel.least if part <= vessel.least * denominator else vessel.most
        parts.append(Fraction(part, denominator) if is_within else Fraction(min(bound, vessel.most)))
    return parts


def _level(amount: Fraction, vessels: Sequence[Vessel]) -> tuple[int, int, list[int]]:
    """Return the fill level per unit of weight as numerator and denominator, and the weights scaled to integers.

    Integers throughout: comparing thousands of fractions takes ten times as long.
    """
    common = lcm(*{vessel.weight.denominator for vessel in vessels})
    weights = [vessel.weight.numerator * (common // vessel.weight.denominator) for vessel in vessels]
    # In this unit, every vessel's content per weight is a whole number.
    units = lcm(*{*weights})
    scale = units * amount.denominator
    left = amount.numerator * units - scale * sum([vessel.least for vessel in vessels])
    turns = []
    for vessel, weight in zip(vessels, weights, strict=True):
        if vessel.most > vessel.least:
            turns += [(vessel.least * (scale // weight), weight), (vessel.most * (scale // weight), -weight)]
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
    """The entitlements of a tree's nodes, computed lazily from the root down.

    ``wanted`` maps each leaf to the classes that it wants; it is entitled to nothing of others.
    """

    def __init__(
        self, root: Branch, totals: Amounts, wanted: Mapping[str, Collection[str]], *, classes: Iterable[str]
    ) -> None:
        self.classes = tuple(classes)
        self.totals = totals
        self._branches = dict(branches_of(root))
        self._asked: dict[str, dict[str, int]] = {}
        self._guaranteed: dict[str, dict[str, int]] = {}
        for path, branch in reversed(self._branches.items()):
            self._ask(path, branch, wanted)
        self._entitled = {root.name: {name: Fraction(totals[name]) for name in self.classes}}

    def _ask(self, path: str, branch: Branch, wanted: Mapping[str, Collection[str]]) -> None:
        """Set what a branch and its leaves may get at most, and what the branch gets at least."""
        parts = [(joined(path, part.name), part) for part in branch.parts]
        for inner, part in parts:
            if isinstance(part, Leaf):
                classes = wanted.get(inner, ())
                self._asked[inner] = {name: NO_LIMIT if name in classes else 0 for name in self.classes}
        self._asked[path], self._guaranteed[path] = {}, {}
        for name in self.classes:
            asked = sum([self._asked[inner][name] for inner, _part in parts])
            inside = sum([self._guaranteed[inner][name] for inner, part in parts if isinstance(part, Branch)])
            asked = min(asked, branch.limit.get(name, asked))
            self._asked[path][name] = asked
            # What is guaranteed to queues inside a queue is guaranteed to the queue, up to its limit.
            self._guaranteed[path][name] = min(asked, max(inside, branch.guarantee.get(name, 0)))

    def of(self, path: str) -> Mapping[str, Fraction]:
        """Return class -> the amount a node is entitled to."""
        if path not in self._entitled:
            above = path.rpartition(SEPARATOR)[0]
            self._divide(above, self.of(above))
        return self._entitled[path]

    def _divide(self, path: str, amounts: Mapping[str, Fraction]) -> None:
        parts = [(joined(path, part.name), part) for part in self._branches[path].parts]
        for inner, _part in parts:
            self._entitled[inner] = {}
        for name in self.classes:
            vessels = [self._vessel(inner, part, name) for inner, part in parts]
            for (inner, _part), amount in zip(parts, poured(amounts[name], vessels), strict=True):
                self._entitled[inner][name] = amount

    def _vessel(self, path: str, part: Branch | Leaf, name: str) -> Vessel:
        weight, asked = Fraction(exact(part.weight)), self._asked[path][name]
        if isinstance(part, Leaf):
            return Vessel(weight, 0, asked)
        if name in part.deserved:
            deserved = min(asked, part.deserved[name])
            return Vessel(weight, deserved, deserved)
        return Vessel(weight, min(asked, self._guaranteed[path][name]), asked)

    def is_asked(self, path: str, name: str) -> bool:
        """Tell whether a node, or anybody inside it, wants some of a class."""
        return self._asked[path][name] > 0

    def promised(self, path: str, part: Branch | Leaf, name: str) -> int | None:
        """Return the amount that replaces a part's weight or may exceed it; None if only its weight counts."""
        if isinstance(part, Leaf):
            return None
        return part.deserved.get(name, self._guaranteed[path][name] or None)


class ClassWeight(NamedTuple):
    """What a part of a branch weighs in the order of service, in one class.

    ``beforehand`` is the fraction of the class that it counts as having besides what it has.
    """

    weight: Fraction
    beforehand: Fraction = Fraction(0)


def class_weights(branch: Branch, path: str, entitlements: Entitlements) -> dict[str, list[ClassWeight]]:
    """Return what the parts of a branch weigh in the order of service, class by class.

    A part without promises weighs its weight. One with a promise weighs as much as if its entitlement had come from a
    weight: who holds the same fraction of what it is entitled to comes at the same turn. Empty if nothing is promised.
    """
    parts = [(joined(path, part.name), part, Fraction(exact(part.weight))) for part in branch.parts]
    columns = []
    for name in entitlements.classes:
        promised = [entitlements.promised(inner, part, name) for inner, part, _weight in parts]
        columns.append(_weights_in(entitlements, name, parts, promised))
    if not any(column is not None for column in columns):
        return {}
    plain = [ClassWeight(weight) for _inner, _part, weight in parts]
    rows = zip(*[column or plain for column in columns], strict=True)
    return {inner: [*row] for (inner, _part, _weight), row in zip(parts, rows, strict=True)}


def _weights_in(
    entitlements: Entitlements,
    name: str,
    parts: Sequence[tuple[str, Branch | Leaf, Fraction]],
    promised: Sequence[int | None],
) -> list[ClassWeight] | None:
    """Return what parts weigh in one class; None if nothing of it is promised or there is nothing."""
    total = entitlements.totals[name]
    if not total or all(amount is None for amount in promised):
        return None
    levels = [
        entitlements.of(inner)[name] / weight
        for (inner, _part, weight), amount in zip(parts, promised, strict=True)
        if amount is None
    ]
    level = max(levels, default=Fraction(0))
    # Where all goes to promises, the level at which everybody would be without them serves for comparison.
    unit = level or Fraction(total) / sum([weight for _inner, _part, weight in parts])
    weights = []
    for (inner, part, weight), promise in zip(parts, promised, strict=True):
        amount = level * weight if promise is None else entitlements.of(inner)[name]
        if isinstance(part, Branch) and name in part.deserved:
            # Also if others left it less, or it wants nothing.
            amount = Fraction(part.deserved[name])
        nothing = ClassWeight(BEGUN / unit, BEGUN / total if entitlements.is_asked(inner, name) else Fraction(0))
        weights.append(ClassWeight(amount / unit) if amount else nothing)
    return weights

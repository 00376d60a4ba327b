"""What each node is entitled to in each class, and who may therefore give what for a claim.

A node is entitled to its guarantee, what it deserves, or its portion by weight. Reclaiming asks this question, one
class at a time and in real amounts, whereas the order of service (``shares``) compares dominant shares and scales them.

A branch divides its entitlement among its parts by water-filling: every part's level rises in proportion to its weight
until the part has what it asks for, and the remainder goes to the others. A part starts at its guarantee and stops at
its limit. A deserved amount set by the operator replaces the weight.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from placement.allocators.entries import exact
from placement.allocators.fair_share.state import NO_LIMIT, FairShares
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, Branch, Leaf, branches_of, joined, way


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
    """Return the fill level per unit of weight as numerator and denominator, and the weights scaled to integers.

    Integers throughout: comparing thousands of fractions takes ten times as long.
    """
    common = lcm(*{one.weight.denominator for one in vessels})
    weights = [one.weight.numerator * (common // one.weight.denominator) for one in vessels]
    # In this unit, every vessel's content per weight is a whole number.
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
    """The entitlements of a tree's nodes, computed lazily from the root down.

    Args:
        shares: the tree and its usage.
        classes: the classes to compute.
        waiting: leaf -> everything it still asks for; by default, the task it waits for.
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
        """Return node -> its usage plus what it asks for, capped by its limit."""
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
        """Return class -> the amount a node is entitled to."""
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
        """Return class -> the whole units by which a node exceeds its entitlement; 0 if it does not."""
        entitled = self.of(path)
        return {name: max(0, int(self.used[path][name] - entitled[name])) for name in self.classes}


def _vessel(weighted: tuple[Branch | Leaf, Fraction], name: str, asked: int) -> Vessel:
    """Return the bounds on what a weighted part may get of a class."""
    part, weight = weighted
    if isinstance(part, Leaf):
        return Vessel(weight, 0, asked)
    if name in part.deserved:
        deserved = min(asked, part.deserved[name])
        return Vessel(weight, deserved, deserved)
    return Vessel(weight, min(asked, part.guarantee.get(name, 0)), asked)


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the paths to a claimant and to a giver part: the level that decides.

    Args:
        claimant, giver: the two sibling nodes.
        claims: class -> what the claimant's node would hold with the claim.
        claimant_entitled: class -> what that node is entitled to.
        holds: class -> what the giver's node holds.
        giver_entitled: class -> what that node is entitled to.
    """

    claimant: str
    giver: str
    claims: Amounts
    claimant_entitled: Mapping[str, float]
    holds: Amounts
    giver_entitled: Mapping[str, float]


def lacking_for(shares: FairShares, task: Amounts) -> dict[str, int]:
    """Return how much of each class a task lacks, judged by the totals alone."""
    free = shares.free()
    return {name: amount - free[name] for name, amount in task.items() if amount and amount > free[name]}


def queue_of(leaf: str) -> str:
    """Return the path of a leaf's branch."""
    return leaf.rpartition(SEPARATOR)[0]


class ClaimRights:
    """The needs of a claim, and everybody's entitlement given that the claimant wants more.

    ``needs`` is what has to become free: (branch, class) -> amount, for the root and every limit in the way.

    Args:
        shares: the tree, its usage and what its leaves wait for.
        claimant: the leaf.
        task: what it wants.
        waiting: leaf -> everything it waits for; by default, its next task.
        classes: the classes in which entitlements are protected; by default, the lacking ones.
    """

    def __init__(
        self,
        shares: FairShares,
        claimant: str,
        task: Amounts,
        *,
        waiting: Mapping[str, Amounts] | None = None,
        classes: Iterable[str] | None = None,
    ) -> None:
        self.root = shares.root.name
        self.claimant = claimant
        self._task = task
        self.lacking = lacking_for(shares, task)
        self.needs = {
            (path, name): task[name] - left[name]
            for path, left in shares.bounds(claimant)
            for name in task
            if task[name] and task[name] > left[name]
        }
        lacking = [name for _path, name in self.needs]
        self.classes = tuple(dict.fromkeys(lacking if classes is None else classes))
        asked = {leaf: shares.wanted(leaf) for leaf in shares.leaves()} if waiting is None else dict(waiting)
        # The claimant may want more later: its entitlement must not depend on the size of a single claim.
        asked[claimant] = dict.fromkeys(self.classes, NO_LIMIT)
        self.entitlements = Entitlements(shares, self.classes, waiting=asked)
        self._may_give: dict[str, bool] = {}
        self._keepers: dict[str, tuple[str, ...]] = {}
        self._surplus: dict[str, dict[str, int]] = {}

    def parting(self, leaf: str) -> tuple[str, str] | None:
        """Return the sibling nodes at which claimant and giver part; None if the giver is the claimant itself."""
        pairs = zip(way(self.claimant), way(leaf), strict=False)
        return next(((ours, theirs) for ours, theirs in pairs if theirs != ours), None)

    def may_give(self, leaf: str) -> bool:
        """Tell whether the claimant is entitled to its claim at the level where this leaf's path parts from its own."""
        if leaf not in self._may_give:
            parting = self.parting(leaf)
            self._may_give[leaf] = parting is not None and all(
                [
                    self.entitlements.used[parting[0]][name] + self._task[name] <= amount
                    for name, amount in self.entitlements.of(parting[0]).items()
                ]
            )
        return self._may_give[leaf]

    def keepers(self, leaf: str) -> tuple[str, ...]:
        """Return the nodes that keep their entitlement when a leaf gives: from the parting down to the leaf's queue."""
        if leaf not in self._keepers:
            parting, nodes = self.parting(leaf), way(leaf)
            from_parting = nodes[nodes.index(parting[1]) :] if parting else []
            self._keepers[leaf] = tuple([path for path in from_parting if path != leaf or path == from_parting[0]])
        return self._keepers[leaf]

    def surplus(self, path: str) -> dict[str, int]:
        """Return class -> how much a node may give."""
        if path not in self._surplus:
            self._surplus[path] = self.entitlements.surplus(path)
        return self._surplus[path]

    def partings(self, leaves: Iterable[str]) -> tuple[Parting, ...]:
        """Return the levels that decide about these leaves, with their figures."""
        pairs = {self.parting(leaf) for leaf in dict.fromkeys(leaves)}
        return tuple([self._shown(*pair) for pair in sorted(filter(None, pairs))])

    def _shown(self, ours: str, theirs: str) -> Parting:
        entitlements = self.entitlements
        return Parting(
            claimant=ours,
            giver=theirs,
            claims={name: entitlements.used[ours][name] + self._task[name] for name in self.classes},
            claimant_entitled={name: float(amount) for name, amount in entitlements.of(ours).items()},
            holds={name: entitlements.used[theirs][name] for name in self.classes},
            giver_entitled={name: float(amount) for name, amount in entitlements.of(theirs).items()},
        )

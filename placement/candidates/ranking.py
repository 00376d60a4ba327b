"""Scores trees, which puts them in order.

The score is the weighted mean of what is known of a tree as a whole (strategy fit, scarce resources) and of the
compactness of its best candidate, which must be composed first. Until then, a tree has an upper bound as its score.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from placement.allocators.ranking_profile import (
    MAX_COMPACTNESS,
    Counts,
    NodeScorer,
    OwnPart,
    RankingProfile,
    compactness,
)
from placement.candidates.fragmentation import TreeFragmentation
from placement.candidates.tree_reader import TreeReader
from placement.cloud.providers import Flags, Floats, Ints
from placement.domain.quantities import ResourceAmounts, summed
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

MAX_SCORE = 100.0

EXACT = 2**53
"""Below this, integers are exact as floats, and so is their quotient rounded once."""

Key = tuple[bool, float, int]
"""A tree's place in the order: whether it breaks a proportion, its negated score, its root. The least is best.

A plain tuple, because sorting compares many thousands of them. Results have keys that begin likewise.
"""

FAILS: Final = 0
ROOT: Final = 2
"""The indices of a key's parts."""


class KeyColumns(NamedTuple):
    """Keys of trees: the parts of ``Key``, by root id in ascending order."""

    roots: Ints
    fails: Flags
    negated: Floats

    def replaced(self, at: Ints, keys: "KeyColumns") -> "KeyColumns":
        """Return the keys with some replaced, given their indices."""
        fails, negated = self.fails.copy(), self.negated.copy()
        fails[at], negated[at] = keys.fails, keys.negated
        return KeyColumns(self.roots, fails, negated)


class ColumnScores:
    """The scores of many trees at once, given what they have and use of each of the scorer's classes, to the last bit.

    Where an integer might exceed what floats count exactly, columns are of Python's own, slower integers.
    """

    def __init__(self, scorer: NodeScorer, capacity: Sequence[Ints], used: Sequence[Ints], *, number: int) -> None:
        pairs = zip(scorer.classes, zip(capacity, used, strict=True), strict=True)
        largest = {name: max(1, *[int(np.abs(column).max(initial=0)) for column in pair]) for name, pair in pairs}
        columns: tuple[Sequence[Any], Sequence[Any]] = capacity, used
        if scorer.largest(largest) >= EXACT:
            columns = [column.astype(object) for column in capacity], [column.astype(object) for column in used]
        self._scorer = scorer
        self._columns = columns
        self._number = number

    def score(self) -> Floats:
        """Return the sum of the scores of each tree."""
        return self._floats(self._scorer.score(*self._columns))

    def fit(self) -> Floats:
        """Return the strategy fit alone."""
        return self._floats(self._scorer.fit(*self._columns))

    def sra(self) -> Floats:
        """Return the score for scarce resources alone."""
        return self._floats(self._scorer.sra(*self._columns))

    def keeps_proportion(self) -> Flags:
        """Return whether each tree keeps the proportion."""
        return np.broadcast_to(np.asarray(self._scorer.keeps_proportion(*self._columns), dtype=bool), self._number)

    def _floats(self, scores: Any) -> Floats:
        return np.broadcast_to(np.asarray(scores, dtype=np.float64), self._number)


OwnAmounts = tuple[int, ...]
"""An own part: how much a tree itself gives of each class that counts, in their order."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How to order trees and candidates: by a profile, and by places with the traits of levels, outermost first.

    Trees whose scores differ by no more than ``near_equal`` points may be swapped, as the seed decides, if any.
    """

    profile: RankingProfile
    levels: tuple[str, ...] = ()
    near_equal: float = 0.0
    seed: int | None = None

    @property
    def is_certain(self) -> bool:
        """Whether chance plays no part."""
        return self.seed is None or not self.near_equal


class Shared(NamedTuple):
    """What sharing providers may serve of a request, and the ``least`` of each class that a tree gives, if it does.

    ``alone``: they may serve it alone with a tree not theirs. Then its sums do not bound its best candidate.
    """

    least: Mapping[str, int]
    alone: bool


class TreeScores:
    """The scores of trees for one request.

    Without sharing providers, trees have scores. With what is ``shared``, candidates do, by their own parts, and a
    tree's score is only an upper bound. ``node_classes`` as in ``NodeScorer``. If it ``varies`` how much candidates
    take, at least what is ``requested``, these have scores of their own (``of_amounts``), and trees nothing but a
    common bound.
    """

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        node_classes: Iterable[str] = (),
        fragmentation: TreeFragmentation | None = None,
        *,
        shared: Shared | None = None,
        varies: bool = False,
    ) -> None:
        profile = ranking.profile
        self._per_point = MAX_SCORE / float(profile.maximum) if profile.maximum else 0.0
        self._per_compactness = self._per_point * float(profile.compactness)
        self._most_compact = self._per_compactness * MAX_COMPACTNESS
        self._fragmentation = fragmentation
        self._per_tidiness = self._per_point * fragmentation.weight if fragmentation else 0.0
        self._tidiness = fragmentation.scores() if fragmentation else {}
        self._ranking = ranking
        self._near_equal = 0.0 if ranking.seed is None else ranking.near_equal
        self._lost: dict[Counts, float] = {(): 0.0}
        self._profile = profile
        self.requested = requested
        self._node_classes = frozenset(node_classes)
        self._shared = shared
        self.filters = profile.filters
        self.varies = varies
        self._by_amounts: dict[tuple[int, ...], TreeScores] = {}
        scorer = self._scorer(OwnPart.exactly(requested))
        self.classes = scorer.classes
        """The classes whose capacity and usage a tree is judged by, in this order."""
        if shared is not None or varies:
            # A requested class counts as scarce if the tree itself gives none of it, and as one to reserve if it gives
            # little of it.
            self.classes = tuple(sorted({*scorer.classes, *self._scorer(OwnPart.exactly({})).classes}))
        if shared is not None:
            scorer = self._scorer(OwnPart(requested, shared.least))
        self.weighed = tuple([name for name in requested if name in self.classes])
        """The classes for which the amount that a tree gives matters."""
        self._scorers: dict[OwnAmounts | None, NodeScorer] = {None: scorer}
        self._judged_rows: dict[OwnAmounts | None, dict[tuple[int, ...], tuple[bool, float]]] = defaultdict(dict)

    @property
    def tell_trees_apart(self) -> bool:
        """Whether anything about a tree as a whole matters: sums of classes, its devices, or which root it has."""
        return bool(self.classes or self._near_equal or self._fragmentation)

    @property
    def signature(self) -> Hashable | None:
        """What identifies these scores for a cache; None if they depend on chance, or on more than sums of trees."""
        if self._near_equal or self._fragmentation is not None or self.varies:
            return None
        shared = self._shared
        shared_form = shared and (frozenset(shared.least.items()), shared.alone)
        return id(self._profile), frozenset(self.requested.items()), self._node_classes, shared_form

    def prefer_devices(self, tree: Tree) -> None:
        """Sort the options of a tree by which of its devices are best taken first."""
        if self._fragmentation is not None:
            self._fragmentation.prefer(tree)

    def keys(self, roots: Ints, capacity: Sequence[Ints], used: Sequence[Ints]) -> KeyColumns:
        """Return the keys of trees, by ascending root, before they are searched: their scores are upper bounds."""
        if self.varies or (self._shared and self._shared.alone and self.tell_trees_apart):
            bound = -MAX_SCORE - (0 if self.varies else self._near_equal + 1)
            return KeyColumns(roots, np.zeros(len(roots), dtype=bool), np.full(len(roots), bound))
        scorer = self._scorers[None]
        at = [self.classes.index(name) for name in scorer.classes]
        amounts = [capacity[place] for place in at], [used[place] for place in at]
        scores = ColumnScores(scorer, *amounts, number=len(roots))
        negated = -(scores.score() * self._per_point + self._most_compact)
        if self._fragmentation is not None:
            tidiness = self._tidiness.get
            negated -= np.array([tidiness(root, 0.0) * self._per_tidiness for root in roots.tolist()])
        return self.shuffled(KeyColumns(roots, ~scores.keeps_proportion(), negated))

    def shuffled(self, keys: KeyColumns) -> KeyColumns:
        """Apply chance to keys that were made without it."""
        if not self._near_equal:
            return keys
        jitter = np.array([self._jitter(root) for root in keys.roots.tolist()], dtype=np.float64)
        return keys._replace(negated=keys.negated - jitter)

    def _scorer(self, own: OwnPart) -> NodeScorer:
        return self._profile.scorer(self.requested, self._node_classes, own)

    def weight(self, row: Sequence[int], taken: OwnAmounts) -> tuple[bool, float]:
        """Tell whether candidates break a proportion, and return their negated score if compact.

        A ``row`` is the root of their tree, then its capacity, then its usage of each of the classes. ``taken`` is how
        much of each class in ``weighed`` the tree itself gives.
        """
        fails, negated = self._judged(row, taken)
        return fails, negated - self._tidiness.get(row[0], 0.0) * self._per_tidiness

    def weight_of_pools(self, row: Sequence[int]) -> tuple[bool, float]:
        """Return the same for what sharing providers serve alone, which touches no place; their trees are one row."""
        return self._judged(row, tuple([self.requested[name] for name in self.weighed]))

    def key_of(self, row: Sequence[int], taken: OwnAmounts, counts: Counts) -> Key:
        """Return the key of a composed candidate that touches so many places of each level of its tree."""
        fails, negated = self.weight(row, taken)
        return fails, negated + self.lost(counts), row[0]

    def key_of_whole(self, row: Sequence[int]) -> Key:
        """Return the key of one tree before it is searched, where nothing but sums and chance decides."""
        return (*self._judged(row, None), row[0])

    def _judged(self, row: Sequence[int], taken: OwnAmounts | None) -> tuple[bool, float]:
        """Return the same as ``weight``, without the part of the score for devices; None for the bound on a tree."""
        judged = self._judged_rows[taken]
        amounts = tuple(row[1:])
        if amounts not in judged:
            if taken not in self._scorers:
                own = OwnPart.exactly(dict(zip(self.weighed, taken or (), strict=True)))
                self._scorers[taken] = self._scorer(own)
            scorer, number = self._scorers[taken], len(self.classes)
            at = [self.classes.index(name) for name in scorer.classes]
            capacity, used = [amounts[place] for place in at], [amounts[number + place] for place in at]
            highest = scorer.score(capacity, used) * self._per_point + self._most_compact
            judged[amounts] = not scorer.keeps_proportion(capacity, used), -highest
        fails, negated = judged[amounts]
        return fails, negated - self._jitter(row[0]) if self._near_equal else negated

    def _jitter(self, root: int) -> float:
        # A hash of two integers is the same in every process.
        return self._near_equal * (hash((self._ranking.seed, root)) % 2**32) / 2**32

    def lost(self, counts: Counts) -> float:
        """Return how far a tree falls short of its upper bound if its best candidate touches this many places."""
        if counts not in self._lost:
            self._lost[counts] = self._per_compactness * (MAX_COMPACTNESS - compactness(counts))
        return self._lost[counts]

    def of_amounts(self, amounts: ResourceAmounts) -> "TreeScores":
        """Return the scores of a result that takes these amounts in all."""
        taken = tuple([amounts[name] for name in self.requested])
        if taken not in self._by_amounts:
            scored_by = dict(zip(self.requested, taken, strict=True)), self._ranking, self._node_classes
            self._by_amounts[taken] = TreeScores(*scored_by, self._fragmentation, shared=self._shared, varies=True)
        return self._by_amounts[taken]


def amounts_of(plan: Plan) -> Mapping[str, int]:
    """Return how much of each class a request asks for."""
    return summed([dict(slot.resources) for slot in plan.slots])


def shared_by(reader: TreeReader, *, is_simple: bool = True) -> Shared | None:
    """Return what sharing providers may serve of a request; ``is_simple``: by one provider a slot, in any tree."""
    if not reader.shares:
        return None
    plan, request, demands = reader.plan, reader.plan.request, reader.shared_demands
    taken = {slot.demand for slot in plan.slots if slot.resources}
    # Whoever serves a single slot alone is also found in its own tree, whose sums bound its score.
    asks_of_root = request.root_required or request.root_forbidden or plan.forbidden_root_aggregates
    comes_with_its_tree = len(plan.slots) == 1 and taken and not asks_of_root
    alone = taken <= demands and not (is_simple and comes_with_its_tree)
    # A tree that gives anything of a class gives all that nobody else may give, or else the least portion.
    portions = [portion for slot in plan.slots if slot.demand in demands for portion in slot.resources]
    least = {name: min([amount for portion, amount in portions if portion == name]) for name, _amount in portions}
    own = summed([dict(slot.resources) for slot in plan.slots if slot.demand not in demands])
    return Shared({**least, **own}, alone)

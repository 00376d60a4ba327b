"""Scores trees, which puts them in order.

The score is the weighted mean of what is known of a tree as a whole (strategy fit, scarce resources) and of the
compactness of its best candidate, which must be composed first. Until then, a tree has an upper bound as its score.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from placement.allocators.compactness import MAX_COMPACTNESS, Counts, compactness
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import NodeScorer, OwnPart
from placement.candidates.column_scores import ColumnScores
from placement.candidates.compose.composed import Composer
from placement.candidates.fragmentation import TreeFragmentation
from placement.candidates.frontier import NEGATED, Key, Keyed
from placement.candidates.key_order import KeyColumns
from placement.cloud.providers import Ints
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

MAX_SCORE = 100.0

OwnAmounts = tuple[int, ...]
"""An own part: how much a tree itself gives of each class that counts, in their order."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How to order trees and candidates.

    Args:
        profile: what is best.
        levels: the traits of the places that compactness counts, outermost first.
        near_equal: trees whose scores differ by no more points may be swapped.
        seed: decides which of them are; None leaves them in order.
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
    """What sharing providers may serve of a request.

    Args:
        least: the least of each class that a tree itself gives, if it gives any.
        alone: whether they may serve it alone with a tree other than theirs, and perhaps not with their own. Then the
            sums of a tree do not bound its best candidate.
    """

    least: Mapping[str, int]
    alone: bool


_TreeJudge = Callable[[Sequence[int]], tuple[bool, float]]
"""(capacities, then usage, of all classes) -> whether it breaks a proportion, and its negated score if compact."""


class _JudgedOnce(dict[Sequence[int], tuple[bool, float]]):
    """Memoised judgements: the hosts of a cloud are much alike."""

    def __init__(self, judge: _TreeJudge) -> None:
        super().__init__()
        self._judge = judge

    def __missing__(self, amounts: Sequence[int]) -> tuple[bool, float]:
        said = self[amounts] = self._judge(amounts)
        return said


class TreeScores:
    """The scores of trees for one request.

    Without sharing providers, trees have scores. With them, candidates do, by their own parts, and a tree's score is
    only an upper bound.

    Args:
        requested: how much is asked for of each class in all.
        ranking: what is best.
        known: every class that providers may have; needed where the profile names scarce resources by family.
        fragmentation: what the request does to the devices of trees; None if the profile ignores that.
        shared: what sharing providers may serve; None if there are none.
        varies: whether the amounts are those of one candidate, and others take more or less; trees are then judged by
            the same classes for all of them.
    """

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        known: Iterable[str] = (),
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
        self._seed = ranking.seed
        self._near_equal = 0.0 if ranking.seed is None else ranking.near_equal
        self._lost: dict[Counts, float] = {(): 0.0}
        self._profile = profile
        self._asked = requested, frozenset(known)
        self._shared = shared
        self.filters = profile.filters
        everything, nothing = OwnPart.exactly(requested), OwnPart.exactly({})
        scorer = self._scorer(everything)
        self.classes = scorer.classes
        """The classes whose capacity and usage a tree is judged by, in this order."""
        if shared is not None or varies:
            # A requested class counts as scarce if the tree itself gives none of it, and as one to reserve if it gives
            # little of it.
            self.classes = tuple(sorted({*scorer.classes, *self._scorer(nothing).classes}))
        if shared is not None:
            scorer = self._scorer(OwnPart(requested, shared.least))
        self._scorer_of_trees = scorer
        self._judged = self._judge(scorer)
        self.weighed = tuple([name for name in requested if name in self.classes])
        """The classes for which the amount that a tree gives matters."""
        self._everything = tuple([requested[name] for name in self.weighed])
        self._of_given: dict[OwnAmounts, _TreeJudge] = {}

    @property
    def tell_trees_apart(self) -> bool:
        """Whether anything about a tree as a whole matters: sums of classes, its devices, or which root it has."""
        return bool(self.classes or self._near_equal or self._fragmentation)

    @property
    def signature(self) -> Hashable | None:
        """What identifies these scores for a cache; None if they depend on chance, or on more than sums of trees."""
        if self._near_equal or self._fragmentation is not None:
            return None
        (requested, known), shared = self._asked, self._shared
        others = shared and (frozenset(shared.least.items()), shared.alone)
        return id(self._profile), frozenset(requested.items()), known, others

    def trees_with(self, classes: AbstractSet[str]) -> list[tuple[int]] | None:
        """Return rows for ``keys`` of all trees with any of these classes left; None if they must be read."""
        if self.classes or self._fragmentation is None or classes.isdisjoint(self._fragmentation.classes):
            return None
        return [(root,) for root in self._fragmentation.roots]

    def prefer_devices(self, trees: Iterable[Tree]) -> None:
        """Sort the options of trees by which of their devices are best taken first."""
        if self._fragmentation is not None:
            for tree in trees:
                self._fragmentation.prefer(tree)

    def keys(self, sums: Collection[Sequence[int]]) -> list[Key]:
        """Return the keys of trees before they are searched, with upper bounds as their scores.

        Args:
            sums: for each tree its root, then its capacity, then its usage of each of the classes.
        """
        if self._shared and self._shared.alone and self.tell_trees_apart:
            return [(False, -MAX_SCORE - self._near_equal - 1, row[0]) for row in sums]
        judged = _JudgedOnce(self._judged)
        keys = [(fails, negated, row[0]) for row in sums for fails, negated in (judged[row[1:]],)]
        if self._fragmentation is not None:
            tidiness, per_point = self._tidiness.get, self._per_tidiness
            keys = [(fails, negated - tidiness(root, 0.0) * per_point, root) for fails, negated, root in keys]
        return self.shuffled(keys) if self._near_equal else keys

    def key_columns(self, roots: Ints, capacity: Sequence[Ints], used: Sequence[Ints]) -> KeyColumns:
        """Return the same for many trees at once, by scores that have a ``signature``.

        Args:
            roots: the roots of the trees, ascending.
            capacity: a column for each of the classes.
            used: likewise.
        """
        fails, negated = np.zeros(len(roots), dtype=bool), np.full(len(roots), -MAX_SCORE - 1)
        if not (self._shared and self._shared.alone and self.tell_trees_apart):
            at = [self.classes.index(name) for name in self._scorer_of_trees.classes]
            amounts = [capacity[place] for place in at], [used[place] for place in at]
            scores = ColumnScores(self._scorer_of_trees, *amounts, number=len(roots))
            fails, negated = ~scores.keeps_proportion(), -(scores.score() * self._per_point + self._most_compact)
        return KeyColumns(roots, fails, negated)

    def shuffled(self, keys: Iterable[Key]) -> list[Key]:
        """Apply chance to keys that were made without it."""
        return [(fails, negated - self._jitter(root), root) for fails, negated, root in keys]

    def _scorer(self, own: OwnPart) -> NodeScorer:
        return self._profile.scorers.of(*self._asked, own)

    def _judge(self, scorer: NodeScorer) -> _TreeJudge:
        number, per_point, most_compact = len(self.classes), self._per_point, self._most_compact
        at = [self.classes.index(name) for name in scorer.classes] if scorer.classes != self.classes else None

        def judged(amounts: Sequence[int]) -> tuple[bool, float]:
            capacity, used = amounts[:number], amounts[number:]
            if at is not None:
                capacity, used = [capacity[place] for place in at], [used[place] for place in at]
            highest = scorer.score(capacity, used) * per_point + most_compact
            return not scorer.keeps_proportion(capacity, used), -highest

        return judged

    def weight(self, row: Sequence[int], given: OwnAmounts) -> tuple[bool, float]:
        """Tell whether candidates break a proportion, and return their negated score if compact.

        Args:
            row: the root of their tree, then its capacity, then its usage of each of the classes.
            given: how much of each class in ``weighed`` the tree itself gives.
        """
        fails, negated = self._judged_of(row, given)
        return fails, negated - self._tidiness.get(row[0], 0.0) * self._per_tidiness

    def weight_of_pools(self, row: Sequence[int]) -> tuple[bool, float]:
        """Return the same for what sharing providers serve alone, which touches no place.

        Args:
            row: as in ``weight``, for the trees of these providers, taken as one.
        """
        return self._judged_of(row, self._everything)

    def _judged_of(self, row: Sequence[int], given: OwnAmounts) -> tuple[bool, float]:
        """Return the same as ``weight``, without the part of the score for devices."""
        if given not in self._of_given:
            own = OwnPart.exactly(dict(zip(self.weighed, given, strict=True)))
            self._of_given[given] = cache(self._judge(self._scorer(own)))
        fails, negated = self._of_given[given](tuple(row[1:]))
        return fails, negated - self._jitter(row[0]) if self._near_equal else negated

    def key_of(self, row: Sequence[int], given: OwnAmounts, counts: Counts) -> Key:
        """Return the key of a composed candidate.

        Args:
            row: as in ``weight``.
            given: likewise.
            counts: how many places of each level of the tree it touches.
        """
        fails, negated = self.weight(row, given)
        return fails, negated + self.lost(counts), row[0]

    def keys_of_nothing(self, roots: Iterable[int]) -> list[Key]:
        """Return the keys of trees that have none of the classes."""
        nothing = [0] * 2 * len(self.classes)
        return self.keys([(root, *nothing) for root in roots])

    def key_of_nothing(self, root: int) -> Key:
        """Return the key of one such tree."""
        return self.keys_of_nothing([root])[0]

    @property
    def least_key_of_nothing(self) -> Key:
        """A lower bound on the keys of trees with none of the classes."""
        fails, negated, _root = self.key_of_nothing(0)
        return fails, negated - self._near_equal, 0

    def _jitter(self, root: int) -> float:
        # A hash of two integers is the same in every process.
        return self._near_equal * (hash((self._seed, root)) % 2**32) / 2**32

    def lost(self, counts: Counts) -> float:
        """Return how far a tree falls short of its upper bound if its best candidate touches this many places."""
        lost = self._lost.get(counts)
        if lost is None:
            lost = self._lost[counts] = self._per_compactness * (MAX_COMPACTNESS - compactness(counts))
        return lost

    def negated_score(self, key: Key, counts: Counts) -> float:
        """Return the negated score of a candidate that touches this many places of a tree with this key."""
        return key[NEGATED] + self.lost(counts)


def least_amounts_of(plan: Plan, shared_demands: AbstractSet[int]) -> Mapping[str, int]:
    """Return the least of each class that a tree itself gives, if it gives any: all that nobody else may give."""
    own: dict[str, int] = {}
    shared: dict[str, int] = {}
    for slot in plan.slots:
        for name, amount in slot.resources:
            if slot.demand in shared_demands:
                shared[name] = min(shared.get(name, amount), amount)
            else:
                own[name] = own.get(name, 0) + amount
    return shared | own


def amounts_of(plan: Plan) -> Mapping[str, int]:
    """Return how much of each class a request asks for."""
    amounts: dict[str, int] = {}
    for slot in plan.slots:
        for name, amount in slot.resources:
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


RankedTree = tuple[Key, Tree, Iterator[Choice]]
"""A tree with its final key, and its candidates."""


def ranked(batch: Sequence[Keyed], composer: Composer[Choice], scores: TreeScores) -> Iterator[RankedTree]:
    """Compose some trees, and deduct from their scores what their best candidates lack in compactness."""
    scores.prefer_devices([tree for _key, tree in batch])
    composed = composer.composed([tree for _key, tree in batch])
    for (key, tree), one in zip(batch, composed, strict=True):
        if one is not None:
            fails, _negated, root = key
            yield (fails, scores.negated_score(key, one.counts), root), tree, one.ways

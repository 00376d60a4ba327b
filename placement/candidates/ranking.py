"""Scores trees, which puts them in order.

The score is the weighted mean of what is known of a tree as a whole (strategy fit, scarce resources) and of the
compactness of its best candidate, which must be composed first. Until then, a tree has an upper bound as its score.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from placement.allocators.ranking_profile import MAX_COMPACTNESS, Counts, RankingProfile, compactness
from placement.allocators.strategy_fit.scorer import NodeScorer, OwnPart
from placement.candidates.fragmentation import TreeFragmentation
from placement.candidates.frontier import Key, KeyColumns
from placement.candidates.scores import MAX_SCORE, ColumnScores
from placement.candidates.tree_reader import TreeReader
from placement.cloud.providers import Ints
from placement.domain.quantities import ResourceAmounts
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

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


class TreeScores:
    """The scores of trees for one request.

    Without sharing providers, trees have scores. With them, candidates do, by their own parts, and a tree's score is
    only an upper bound.

    Args:
        requested: how much is asked for of each class in all.
        ranking: what is best.
        families: every class that providers may have; needed where the profile names scarce resources by family.
        fragmentation: what the request does to the devices of trees; None if the profile ignores that.
        shared: what sharing providers may serve; None if there are none.
        varies: whether the amounts are those of one candidate, and others take more or less; trees are then judged by
            the same classes for all of them.
    """

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        families: Iterable[str] = (),
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
        self.requested = requested
        self._families = frozenset(families)
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
        self.weighed = tuple([name for name in requested if name in self.classes])
        """The classes for which the amount that a tree gives matters."""
        self._everything = tuple([requested[name] for name in self.weighed])
        self._of_taken: dict[OwnAmounts, _TreeJudge] = {}

    @property
    def tell_trees_apart(self) -> bool:
        """Whether anything about a tree as a whole matters: sums of classes, its devices, or which root it has."""
        return bool(self.classes or self._near_equal or self._fragmentation)

    @property
    def signature(self) -> Hashable | None:
        """What identifies these scores for a cache; None if they depend on chance, or on more than sums of trees."""
        if self._near_equal or self._fragmentation is not None:
            return None
        shared = self._shared
        shared_form = shared and (frozenset(shared.least.items()), shared.alone)
        return id(self._profile), frozenset(self.requested.items()), self._families, shared_form

    def prefer_devices(self, trees: Iterable[Tree]) -> None:
        """Sort the options of trees by which of their devices are best taken first."""
        if self._fragmentation is not None:
            for tree in trees:
                self._fragmentation.prefer(tree)

    def keys(self, roots: Ints, capacity: Sequence[Ints], used: Sequence[Ints]) -> KeyColumns:
        """Return the keys of trees before they are searched, with upper bounds as their scores.

        Args:
            roots: the roots of the trees, ascending.
            capacity: a column for each of the classes.
            used: likewise.
        """
        if self._shared and self._shared.alone and self.tell_trees_apart:
            return all_alike(roots, -MAX_SCORE - self._near_equal - 1)
        at = [self.classes.index(name) for name in self._scorer_of_trees.classes]
        amounts = [capacity[place] for place in at], [used[place] for place in at]
        scores = ColumnScores(self._scorer_of_trees, *amounts, number=len(roots))
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
        return self._profile.scorers.scorer(self.requested, self._families, own)

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

    def weight(self, row: Sequence[int], taken: OwnAmounts) -> tuple[bool, float]:
        """Tell whether candidates break a proportion, and return their negated score if compact.

        Args:
            row: the root of their tree, then its capacity, then its usage of each of the classes.
            taken: how much of each class in ``weighed`` the tree itself gives.
        """
        fails, negated = self._judged_of(row, taken)
        return fails, negated - self._tidiness.get(row[0], 0.0) * self._per_tidiness

    def weight_of_pools(self, row: Sequence[int]) -> tuple[bool, float]:
        """Return the same for what sharing providers serve alone, which touches no place; their trees are one row."""
        return self._judged_of(row, self._everything)

    def _judged_of(self, row: Sequence[int], taken: OwnAmounts) -> tuple[bool, float]:
        """Return the same as ``weight``, without the part of the score for devices."""
        if taken not in self._of_taken:
            own = OwnPart.exactly(dict(zip(self.weighed, taken, strict=True)))
            self._of_taken[taken] = cache(self._judge(self._scorer(own)))
        fails, negated = self._of_taken[taken](tuple(row[1:]))
        return fails, negated - self._jitter(row[0]) if self._near_equal else negated

    def key_of(self, row: Sequence[int], taken: OwnAmounts, counts: Counts) -> Key:
        """Return the key of a composed candidate that touches so many places of each level of its tree."""
        fails, negated = self.weight(row, taken)
        return fails, negated + self.lost(counts), row[0]

    def key_of_whole(self, row: Sequence[int]) -> Key:
        """Return the key of one tree before it is searched, where nothing but sums and chance decides."""
        fails, negated = self._judge(self._scorer_of_trees)(row[1:])
        return fails, negated - self._jitter(row[0]), row[0]

    def _jitter(self, root: int) -> float:
        # A hash of two integers is the same in every process.
        return self._near_equal * (hash((self._seed, root)) % 2**32) / 2**32

    def lost(self, counts: Counts) -> float:
        """Return how far a tree falls short of its upper bound if its best candidate touches this many places."""
        lost = self._lost.get(counts)
        if lost is None:
            lost = self._lost[counts] = self._per_compactness * (MAX_COMPACTNESS - compactness(counts))
        return lost


def all_alike(roots: Ints, negated: float) -> KeyColumns:
    """Return keys that tell trees apart by their roots alone."""
    return KeyColumns(roots, np.zeros(len(roots), dtype=bool), np.full(len(roots), negated))


class ScoresByCount(TreeScores):
    """The scores of trees for a request that takes more where there is more: of trees there are only bounds.

    The arguments are those of ``TreeScores``, for the least that is asked for.
    """

    signature = None

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        families: Iterable[str] = (),
        fragmentation: TreeFragmentation | None = None,
        *,
        shared: Shared | None = None,
    ) -> None:
        super().__init__(requested, ranking, families, fragmentation, shared=shared, varies=True)
        self._of_amounts = cache(
            lambda amounts: TreeScores(dict(amounts), ranking, families, fragmentation, shared=shared, varies=True)
        )

    def keys(self, roots: Ints, capacity: Sequence[Ints], used: Sequence[Ints]) -> KeyColumns:  # noqa: ARG002 - bounds
        """Return keys that tell trees apart by their roots alone."""
        return all_alike(roots, -MAX_SCORE)

    def of_amounts(self, amounts: ResourceAmounts) -> TreeScores:
        """Return the scores of a result that takes these amounts in all."""
        return self._of_amounts(tuple((name, amounts[name]) for name in self.requested))


def _least_amounts_of(plan: Plan, shared_demands: AbstractSet[int]) -> Mapping[str, int]:
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


def shared_by(reader: TreeReader, *, is_simple: bool = True) -> Shared | None:
    """Return what sharing providers may serve of a request, for its scores; None if no provider shares.

    Args:
        reader: reads the trees.
        is_simple: whether each slot takes one provider, and no tree that may serve is left out.
    """
    if not reader.shares:
        return None
    plan, demands = reader.plan, reader.shared_demands
    taken = {slot.demand for slot in plan.slots if slot.resources}
    alone = taken <= demands and not (is_simple and _comes_with_its_tree(plan))
    return Shared(_least_amounts_of(plan, demands), alone)


def _comes_with_its_tree(plan: Plan) -> bool:
    """Tell whether a sharing provider that serves alone is also found in its own tree, whose sums bound its score."""
    request = plan.request
    asks_of_root = request.root_required or request.root_forbidden or plan.forbidden_root_aggregates
    return len(plan.slots) == 1 and bool(plan.slots[0].resources) and not asks_of_root

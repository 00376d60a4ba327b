"""The scores of trees and candidates and their parts, each from 0 to 100."""

from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from placement.allocators.ranking_profile import MAX_COMPACTNESS, Counts, RankingProfile, compactness
from placement.allocators.strategy_fit.scorer import NodeScorer, OwnPart, ScoredNode
from placement.cloud.providers import Flags, Floats, Ints
from placement.domain.quantities import ResourceAmounts, summed

MAX_SCORE = 100.0

EXACT = 2**53
"""Below this, integers are exact as floats, and so is their quotient rounded once."""


class Score(NamedTuple):
    """How good a candidate is. Parts that the profile leaves out are None.

    Args:
        total: the weighted mean of the parts; 0 if the profile has none.
        fit, sra: the strategy fit of the provider tree.
        raw_fit, raw_sra: the same as Volcano's plugin states it, from 0 to 100 times the weight.
        compactness: how few places of each level the candidate touches.
        fragmentation: how useful what it leaves of devices is for expected work.
        touched: how many places it touches of each level, outermost first.
        keeps_proportion: whether it leaves the reserve of scarce resources intact. Candidates that break it come last,
            whatever their total, or are left out.
    """

    total: float
    fit: float | None
    sra: float | None
    compactness: float | None
    fragmentation: float | None
    touched: Counts
    keeps_proportion: bool | None
    raw_fit: float | None
    raw_sra: float | None

    def without_room(self) -> "Score":
        """Return the score of the same candidate where it has no room: each part is 0."""
        parts = (self.fit, self.sra, self.compactness, self.fragmentation, self.raw_fit, self.raw_sra)
        fit, sra, compact, tidy, raw_fit, raw_sra = [None if part is None else 0.0 for part in parts]
        return Score(0.0, fit, sra, compact, tidy, self.touched, self.keeps_proportion, raw_fit, raw_sra)


class ColumnScores:
    """The scores of many trees at once: what ``NodeScorer`` says of each, to the last bit.

    Where an integer might exceed what floats count exactly, columns of Python's own integers are used, which are slower
    and have no bound.

    Args:
        scorer: scores one tree.
        capacity: a column for each of the scorer's classes.
        used: likewise.
        number: how many trees there are.
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


class CandidateScorer:
    """Scores candidates that take the same amounts, on any tree.

    Args:
        profile: what counts, and how much.
        requested: what is asked for, by class.
        own: what the tree itself gives of it; sharing providers give the rest.
        families: every class that trees may have; needed where the profile names scarce resources by family.
    """

    def __init__(
        self, profile: RankingProfile, requested: ResourceAmounts, own: ResourceAmounts, families: Iterable[str] = ()
    ) -> None:
        self._scorer = profile.scorers.scorer(requested, frozenset(families), OwnPart.exactly(own))
        self.classes = self._scorer.classes
        """The classes whose capacity and usage a tree is judged by, in this order."""
        self._per_point = MAX_SCORE / float(profile.maximum) if profile.maximum else 0.0
        self._per_compactness = self._per_point * float(profile.compactness)
        self._per_tidiness = self._per_point * float(profile.fragmentation.weight) if profile.fragmentation else 0.0
        self._profile = profile

    def score(
        self, capacities: Sequence[int], used: Sequence[int], touched: Counts, fragmentation: float | None = None
    ) -> Score:
        """Return the score of a candidate.

        Args:
            capacities: what the tree has of each of the classes.
            used: what is in use of it, without the candidate.
            touched: how many places of each level the candidate touches; none is as compact as one.
            fragmentation: what it leaves of devices, from 0 to 100 (``candidates.fragmentation``); None if unknown.
        """
        scorer, amounts = self._scorer, (capacities, used)
        points = (scorer.score(*amounts), scorer.fit(*amounts), scorer.sra(*amounts))
        compact, tidy = _compactness(touched), fragmentation or 0.0
        total, fit, sra, compactness, *raw_parts = self._parts(points, scorer.keeps_proportion(*amounts), compact, tidy)
        tidiness = fragmentation if self._profile.fragmentation else None
        return Score(total, fit, sra, compactness, tidiness, touched, *raw_parts)

    def scores(
        self,
        capacities: Sequence[Ints],
        used: Sequence[Ints],
        *,
        touched: Sequence[Counts],
        fragmentation: Sequence[float | None],
    ) -> list[Score]:
        """Return the scores of several candidates at once; the arguments are columns of those of ``score``."""
        columns = ColumnScores(self._scorer, capacities, used, number=len(touched))
        compactness_of = {counts: _compactness(counts) for counts in {*touched}}
        compact = np.array([compactness_of[counts] for counts in touched], dtype=np.float64)
        tidy = np.array([part or 0.0 for part in fragmentation], dtype=np.float64)
        points = columns.score(), columns.fit(), columns.sra()
        parts = self._parts(points, columns.keeps_proportion(), compact, tidy)
        total, fit, sra, compactness, *raw_parts = [repeat(None) if part is None else part.tolist() for part in parts]
        tidiness = fragmentation if self._profile.fragmentation else repeat(None)
        return [*map(Score, total, fit, sra, compactness, tidiness, touched, *raw_parts)]

    def _parts(self, points: tuple[Any, Any, Any], keeps_proportion: Any, compact: Any, tidy: Any) -> Sequence[Any]:
        """Return the fields of scores but what is only passed on, as numbers or columns of them."""
        profile, strategy = self._profile, self._profile.strategy
        score, raw_fit, raw_sra = points
        # Term by term as ``candidates.ranking`` adds them, so that equal candidates are equal here as well.
        best = score * self._per_point + self._per_compactness * MAX_COMPACTNESS
        total = best - self._per_compactness * (MAX_COMPACTNESS - compact) + self._per_tidiness * tidy
        return (
            total,
            raw_fit / float(strategy.fit.weight) if strategy.fit and strategy.fit.weight else None,
            raw_sra / float(strategy.sra.weight) if strategy.sra and strategy.sra.weight else None,
            compact if profile.compactness else None,
            keeps_proportion if strategy.proportional else None,
            raw_fit if strategy.fit else None,
            raw_sra if strategy.sra else None,
        )


def _compactness(touched: Counts) -> float:
    return compactness([max(1, number) for number in touched])


def score(
    profile: RankingProfile,
    requested: ResourceAmounts,
    node: ScoredNode,
    *,
    own: ResourceAmounts,
    touched: Counts,
    fragmentation: float | None = None,
) -> Score:
    """Return the score of one candidate; the arguments are those of ``CandidateScorer``, and of its ``score``.

    >>> verdict = score(RankingProfile(), {"VCPU": 4}, ScoredNode({"VCPU": 16}), own={"VCPU": 4}, touched=(2, 2))
    >>> verdict.total, verdict.fit, verdict.sra, verdict.compactness
    (83.0, 75.0, 100.0, 40.0)
    """
    scorer = CandidateScorer(profile, requested, own, node.allocatable)
    capacities, used = ([amounts.get(name, 0) for name in scorer.classes] for amounts in node)
    return scorer.score(capacities, used, touched, fragmentation)


def score_of_pools(
    profile: RankingProfile, requested: ResourceAmounts, nodes: Collection[ScoredNode], *, levels: int
) -> Score:
    """Return the score of a candidate that only sharing providers serve: their trees count as one, without places."""
    node = ScoredNode(summed([tree.allocatable for tree in nodes]), summed([tree.used for tree in nodes]))
    return score(profile, requested, node, own=requested, touched=(0,) * levels)

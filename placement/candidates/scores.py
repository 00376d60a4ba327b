"""The score of a candidate and its parts, each from 0 to 100."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from placement.allocators.compactness import Counts, compactness
from placement.allocators.entries import Number, exact
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import ScoredNode, assess
from placement.domain.amounts import summed


@dataclass(frozen=True, slots=True)
class Score:
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


def score(
    profile: RankingProfile,
    requested: Mapping[str, int],
    node: ScoredNode,
    *,
    own: Mapping[str, int],
    touched: Counts,
    fragmentation: float | None = None,
) -> Score:
    """Return the score of a candidate.

    Args:
        profile: what counts, and how much.
        requested: what is asked for, by class.
        node: what the tree has and uses, without the candidate.
        own: what the tree itself gives of it; sharing providers give the rest.
        touched: how many places of each level the candidate touches; none is as compact as one.
        fragmentation: what it leaves of devices, from 0 to 100 (``candidates.fragmentation``); None if unknown.

    >>> said = score(RankingProfile(), {"VCPU": 4}, ScoredNode({"VCPU": 16}), own={"VCPU": 4}, touched=(2, 2))
    >>> said.total, said.fit, said.sra, said.compactness
    (57.5, 75.0, None, 40.0)
    """
    strategy = profile.strategy
    verdict = assess(strategy, requested, node, own)
    compact = compactness([max(1, number) for number in touched])
    total = verdict.total + exact(profile.compactness) * Fraction(compact)
    if profile.fragmentation is not None:
        total += exact(profile.fragmentation.weight) * Fraction(fragmentation or 0.0)
    return Score(
        total=float(100 * total / profile.maximum) if profile.maximum else 0.0,
        fit=_part(verdict.fit, strategy.fit.weight) if strategy.fit else None,
        sra=_part(verdict.sra, strategy.sra.weight) if strategy.sra else None,
        compactness=compact if profile.compactness else None,
        fragmentation=fragmentation if profile.fragmentation else None,
        touched=touched,
        keeps_proportion=verdict.keeps_proportion if strategy.proportional else None,
        raw_fit=float(verdict.fit) if strategy.fit else None,
        raw_sra=float(verdict.sra) if strategy.sra else None,
    )


def score_of_pools(
    profile: RankingProfile, requested: Mapping[str, int], nodes: Collection[ScoredNode], *, levels: int
) -> Score:
    """Return the score of a candidate that only sharing providers serve.

    Args:
        profile: what counts, and how much.
        requested: what is asked for, by class.
        nodes: what the trees of these providers have and use; they count as one node, in which no place is touched.
        levels: how many levels there are.
    """
    node = ScoredNode(summed([one.allocatable for one in nodes]), summed([one.used for one in nodes]))
    return score(profile, requested, node, own=requested, touched=(0,) * levels)


def _part(weighted: Fraction, weight: Number) -> float | None:
    return float(weighted / exact(weight)) if weight else None

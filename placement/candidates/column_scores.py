"""Scores many trees at once: what ``NodeScorer`` says of each, worked out on columns.

The numbers are the same to the last bit: integers until one final division. Where an integer might exceed what floats
count exactly, columns of Python's own integers are used, which are slower and have no bound.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placement.allocators.strategy_fit import NodeScorer
from placement.allocators.strategy_fit.scorer import ScoreFactors
from placement.cloud.providers import Flags, Floats, Ints

EXACT = 2**53
"""Below this, integers are exact as floats, and so is their quotient rounded once."""


class ColumnScores:
    """The scores of many trees.

    Args:
        scorer: scores one tree.
        capacity: a column for each of the scorer's classes.
        used: likewise.
        number: how many trees there are.
    """

    def __init__(self, scorer: NodeScorer, capacity: Sequence[Ints], used: Sequence[Ints], *, number: int) -> None:
        columns: tuple[Sequence[Any], Sequence[Any]] = capacity, used
        if _largest(scorer, capacity, used) >= EXACT:
            columns = [column.astype(object) for column in capacity], [column.astype(object) for column in used]
        self._scorer = scorer
        self._columns = columns
        self._number = number
        self._numerator, self._denominator = _mean(scorer, *columns, number)
        self._avoided = _avoided(scorer, columns[0], number)

    def score(self) -> Floats:
        """Return the sum of the scores of each tree."""
        return self._weighed(self._scorer.factors)

    def fit(self) -> Floats:
        """Return the strategy fit alone."""
        return self._weighed(self._scorer.factors._replace(avoided=0))

    def sra(self) -> Floats:
        """Return the score for scarce resources alone."""
        return self._weighed(self._scorer.factors._replace(mean=0))

    def keeps_proportion(self) -> Flags:
        """Return whether each tree keeps the proportion."""
        return _keeps_proportion(self._scorer, *self._columns, self._number)

    def _weighed(self, factors: ScoreFactors) -> Floats:
        whole = self._numerator * factors.mean + self._denominator * self._avoided * factors.avoided
        scores: Floats = (whole / (self._denominator * factors.common)).astype(np.float64)
        return scores


def _largest(scorer: NodeScorer, capacity: Sequence[Ints], used: Sequence[Ints]) -> int:
    """Return a bound on all integers that the scores pass through."""
    most = [
        max(1, *map(abs, (int(column.min(initial=0)), int(column.max(initial=0))))) for column in (*capacity, *used)
    ]
    largest = max(most, default=1)
    at = {name: place for place, name in enumerate(scorer.classes)}
    denominator, weights = 1, 0
    for term in scorer.terms.fit:
        denominator *= most[at[term.name]]
        weights += term.weight
    scarce = sum([term.weight for term in scorer.terms.scarce])
    factors, asked = scorer.factors, max([term.most + term.least for term in scorer.terms.fit], default=0)
    score = denominator * (weights * factors.mean + scarce * factors.avoided + factors.common)
    reserves = [
        (2 * largest + reserve.primary_amount + reserve.secondary_amount) * max(reserve.ratio.as_integer_ratio())
        for reserve in scorer.terms.reserves
    ]
    return max(score, 2 * largest + asked, *reserves)


def _mean(scorer: NodeScorer, capacity: Sequence[Any], used: Sequence[Any], number: int) -> tuple[Any, Any]:
    """Return the sum of weight x ratio over the requested classes, as numerators and denominators."""
    numerator: Any = np.zeros(number, dtype=capacity[0].dtype if capacity else np.int64)
    denominator = numerator + 1
    is_full = np.zeros(number, dtype=bool)
    for term in scorer.terms.fit:
        if not term.most:
            continue
        place = scorer.classes.index(term.name)
        there, in_use = capacity[place], used[place]
        exceeds = (there > 0) & (in_use + term.least > there)
        is_full |= exceeds
        counts = (there > 0) & ~exceeds
        counting = np.minimum(in_use + term.most, there) if term.packs else there - in_use - term.least
        numerator = np.where(counts, numerator * there + denominator * counting * term.weight, numerator)
        denominator = np.where(counts, denominator * there, denominator)
    if scorer.is_alone:
        numerator, denominator = np.where(is_full, 0, numerator), np.where(is_full, 1, denominator)
    return numerator, denominator


def _avoided(scorer: NodeScorer, capacity: Sequence[Any], number: int) -> Any:
    """Return the weight of the scarce resources that do not count against a tree."""
    at = {name: place for place, name in enumerate(scorer.classes)}
    left: Any = np.full(number, sum([term.weight for term in scorer.terms.scarce]))
    for term in scorer.terms.scarce:
        has_any = np.zeros(number, dtype=bool)
        for name in term.names:
            has_any |= (capacity[at[name]] > 0).astype(bool)
        left = left - has_any * term.weight
    for name in scorer.terms.needed:
        left = np.where((capacity[at[name]] > 0).astype(bool), left, 0)
    return left.astype(capacity[0].dtype) if capacity else left


def _keeps_proportion(scorer: NodeScorer, capacity: Sequence[Any], used: Sequence[Any], number: int) -> Flags:
    at = {name: place for place, name in enumerate(scorer.classes)}
    keeps = np.ones(number, dtype=bool)
    for reserve in scorer.terms.reserves:
        primary, secondary = at[reserve.primary], at[reserve.secondary]
        units, per = reserve.ratio.as_integer_ratio()
        idle = np.maximum(0, capacity[primary] - used[primary] - reserve.primary_amount)
        left = capacity[secondary] - used[secondary] - reserve.secondary_amount
        keeps &= ((capacity[primary] <= 0) | (left * per >= idle * units)).astype(bool)
    return keeps

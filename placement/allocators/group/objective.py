"""What makes one placement better than another: the rules, the objective, and a judge for placements made elsewhere.

The objective is a value to show, and is packed into one integer to search with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from placement.allocators.group.locations import Locations, levels_outside_in
from placement.allocators.group.scorers import ScorerChoice, scorer_by_name


@dataclass(frozen=True, slots=True)
class Objective:
    """The quality of a placement, compared lexicographically.

    Args:
        score: the paper's score of the root, 0..1: the mean of all resources' scores after all running containers,
            including resources nobody asked for.
        touched: for each level that counts, most important first, how many locations serve something or contain one
            that does; fewer are better.
        tightness: the sum of the squared mean scores over all locations below the root; higher when the same usage
            fills some locations and leaves others whole.
        total: the sum of which ``score`` is the mean: the paper's s_l of the root, equation 17.
    """

    score: Fraction
    touched: tuple[int, ...]
    tightness: Fraction
    total: Fraction

    @property
    def rank(self) -> tuple[Fraction, tuple[int, ...], Fraction]:
        """The sort key of placements; the highest is best."""
        return self.score, tuple([-count for count in self.touched]), self.tightness


class Weights:
    """Packs an objective into one integer, so that comparing and adding are cheap and exact.

    Each component outweighs the whole range of all that follow it.
    """

    def __init__(self, locations: Locations, levels: Sequence[str] | None) -> None:
        self.levels = tuple(levels_outside_in(locations.all) if levels is None else levels)
        common = lcm(*[max(1, location.keys) for location in locations.all])
        self.square = common * locations.scale
        """The square of this represents a squared mean score of 1."""
        self.tightness = [
            (common // location.keys) ** 2 if location.keys and location.index else 0 for location in locations.all
        ]
        """Location -> the factor of its squared sum of scores."""
        weight = 2 * len(locations.all) * self.square**2 + 1
        cost = {}
        for level in reversed(self.levels):
            cost[level] = weight
            weight *= len(locations.all) + 1
        self.touch = [cost.get(location.level, 0) if location.index else 0 for location in locations.all]
        """Location -> the price of touching it."""
        self.score = weight
        """The worth of one unit of scaled score."""


def objective_of(locations: Locations, weights: Weights, scores: Sequence[int], touched: Iterable[int]) -> Objective:
    """Return the objective of a state.

    ``scores`` has the scaled sum of each location; touched are those that serve something or contain one that does.
    """
    counts = dict.fromkeys(weights.levels, 0)
    for location in touched:
        level = locations.all[location].level
        if location and level in counts:
            counts[level] += 1
    tightness = sum([score**2 * factor for score, factor in zip(scores, weights.tightness, strict=True)])
    return Objective(
        Fraction(scores[0], locations.scale * max(1, locations.all[0].keys)),
        tuple(counts.values()),
        Fraction(tightness, weights.square**2),
        Fraction(scores[0], locations.scale),
    )


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a placement good.

    Args:
        distinct: whether parts of one requirement that have the same level must get different locations.
        levels: the levels where touching fewer locations is better, most important first; by default all of them, the
            outermost first.
        scorer_for: maps a resource's base name to its scorer.
    """

    distinct: bool = False
    levels: Sequence[str] | None = None
    scorer_for: ScorerChoice = scorer_by_name


USUAL_RULES = Rules()

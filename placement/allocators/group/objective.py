"""What makes one placement better than another, as a value to show and as one number to search with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from placement.allocators.group.locations import Locations


@dataclass(frozen=True, slots=True)
class Objective:
    """How good a placement is; what comes first decides, what follows only among equals.

    Args:
        score: the seed's score of the root, 0..1: the mean of the scores of all resources, those nobody asked for
            included, after all running containers.
        touched: how many locations serve something or hold one that does, for each level that counts, most important
            level first; fewer are better.
        tightness: the sum over all locations below the root of the squared mean score of the resources in it: of two
            ways to use as much, the one that fills some locations and leaves others whole has more.
        total: the sum of all scores of which ``score`` is the mean: the seed's s_l of the root, equation 17.
    """

    score: Fraction
    touched: tuple[int, ...]
    tightness: Fraction
    total: Fraction

    @property
    def rank(self) -> tuple[Fraction, tuple[int, ...], Fraction]:
        """What compares placements: the best has the highest."""
        return self.score, tuple([-count for count in self.touched]), self.tightness


class Weights:
    """Packs the parts of an objective into one integer, so that comparing and adding are cheap and exact.

    A part weighs more than the whole range of all that follow it.

    Args:
        locations: the locations.
        levels: the levels whose touched locations count, most important first.
    """

    def __init__(self, locations: Locations, levels: Sequence[str]) -> None:
        self.levels = tuple(levels)
        common = lcm(*[max(1, location.keys) for location in locations.all])
        self.square = common * locations.scale
        """A squared mean score of 1 is the square of this."""
        self.tightness = [
            (common // location.keys) ** 2 if location.keys and location.index else 0 for location in locations.all
        ]
        """By location: what a squared sum of scores is multiplied by."""
        weight = 2 * len(locations.all) * self.square**2 + 1
        cost = {}
        for level in reversed(self.levels):
            cost[level] = weight
            weight *= len(locations.all) + 1
        self.touch = [cost.get(location.level, 0) if location.index else 0 for location in locations.all]
        """By location: the price of touching it."""
        self.score = weight
        """What one part of the scale of scores is worth."""
        self.rest = len(locations.all) * self.square**2 + 1
        """More than all tightness together is worth."""

    def gain_in(self, worth: int) -> int:
        """Return how much of a worth, made by placing something, is score, in parts of the scale."""
        # What is not score is less than one part of the scale is worth, and but for tightness a cost.
        return (worth + self.score - self.rest) // self.score


def objective_of(locations: Locations, weights: Weights, scores: Sequence[int], touched: Iterable[int]) -> Objective:
    """Return the objective of a state.

    Args:
        locations: the locations.
        weights: which levels count.
        scores: the sum of the scores in each location, in parts of the scale.
        touched: the locations that serve something or hold one that does.
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

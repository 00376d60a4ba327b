"""The tree of locations as the search sees it, numbered, and what makes one placement in it better than another.

The objective is a value to show, and is packed into one integer to search with.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from placement.allocators import natural_key
from placement.allocators.group.tree import (
    ANYWHERE,
    Capacity,
    Location,
    Path,
    Phase,
    Scorer,
    ScorerChoice,
    Used,
    in_units,
    scorer_by_name,
)

ROUNDING = 10**12
"""The resolution of scores that are not fractions of an allocatable amount: one part in this many."""


class ScoredCapacity(NamedTuple):
    """One allocatable resource of a location with its scorer."""

    allocatable: int
    scorer: Scorer
    used: Used


@dataclass(slots=True)
class LocationNode:
    """One location.

    Args:
        index: its number, in natural order of names, a location before those inside it.
        parent: the number of the enclosing location, -1 for the root.
        end: one past the highest number inside.
        keys: the number of resources here and inside.
        score: the sum of their scores before anything is placed, in units of 1/``Locations.scale``.
    """

    index: int
    parent: int
    level: str
    path: Path
    capacities: dict[str, ScoredCapacity]
    children: list[int] = field(default_factory=list)
    end: int = 0
    keys: int = 0
    score: int = 0


class Locations:
    """All locations of a tree in preorder; ValueError for a negative amount, or two siblings of one name."""

    def __init__(self, root: Location, scorer_for: ScorerChoice) -> None:
        self._scorer_for = scorer_for
        self.all: list[LocationNode] = []
        self._below: dict[tuple[int, str], list[int]] = {}
        self._scores: dict[tuple[ScoredCapacity, tuple[int, ...]], int] = {}
        self._add(root, -1, ())
        capacities = [capacity for location in self.all for capacity in location.capacities.values()]
        units = [
            capacity.allocatable if capacity.scorer.adds_up else capacity.allocatable.bit_count()
            for capacity in capacities
        ]
        self.scale = lcm(ROUNDING, *[unit for unit in units if unit])
        for node in reversed(self.all):
            inside = [self.all[child] for child in node.children]
            scores = [self.score(capacity) for capacity in node.capacities.values()]
            node.keys = len(scores) + sum([child.keys for child in inside])
            node.score = sum(scores) + sum([child.score for child in inside])

    def _add(self, location: Location, parent: int, path: Path) -> None:
        level = location.level if path else ""
        node = LocationNode(len(self.all), parent, level, path, self._scored(location.capacities, path))
        self.all.append(node)
        steps = set()
        for child in sorted(location.children, key=lambda child: (natural_key(child.level), natural_key(child.name))):
            step = (child.level, child.name)
            if step in steps:
                raise ValueError(f"There are two locations {'/'.join(step)} beside each other.")
            steps.add(step)
            node.children.append(len(self.all))
            self._add(child, node.index, (*path, step))
        node.end = len(self.all)

    def _scored(self, capacities: Mapping[str, Capacity], path: Path) -> dict[str, ScoredCapacity]:
        scored = {}
        for base, capacity in capacities.items():
            if capacity.allocatable < 0 or capacity.used < 0:
                where = "/".join([part for step in path for part in step] + [base])
                raise ValueError(f"What is allocatable or used of {where} is negative.")
            scorer = in_units(self._scorer_for(base), capacity.units)
            scored[base] = ScoredCapacity(capacity.allocatable, scorer, Used(capacity.used))
        return scored

    def score(self, capacity: ScoredCapacity, requested: tuple[int, ...] = ()) -> int:
        """Return a resource's scaled score, as it is or after a running container's requests."""
        key = (capacity, requested)
        if key not in self._scores:
            verdict = capacity.scorer.judge(capacity.allocatable, capacity.used, requested, Phase.RUNNING)
            self._scores[key] = self.scaled(verdict.score)
        return self._scores[key]

    def scaled(self, score: float | Fraction) -> int:
        """Convert a score to an integer in units of 1/``scale``; ValueError if it is not in 0..1."""
        exact = score if isinstance(score, Fraction) else Fraction(score)
        if not 0 <= exact.numerator <= exact.denominator:
            raise ValueError(f"A scorer returned {score}; scores are in 0..1.")
        return exact.numerator * self.scale // exact.denominator

    def below(self, location: int, level: str) -> list[int]:
        """Return the locations of a level anywhere inside another one, in natural order."""
        locations = self._below.get((location, level))
        if locations is None:
            inside = range(location + 1, self.all[location].end)
            locations = [index for index in inside if level in (ANYWHERE, self.all[index].level)]
            self._below[location, level] = locations
        return locations

    def trail(self, outer: int, inner: int) -> tuple[int, ...]:
        """Return the path from just below an outer location down to an inner one."""
        steps = []
        while inner != outer:
            steps.append(inner)
            inner = self.all[inner].parent
        return tuple(reversed(steps))

    def free(self, location: int) -> Counter[tuple[str, str]]:
        """Return (level, resource) -> the amount free in a location and inside it, for resources that add up."""
        free: Counter[tuple[str, str]] = Counter()
        for inner in self.all[location : self.all[location].end]:
            for base, capacity in inner.capacities.items():
                if capacity.scorer.adds_up:
                    amount = max(0, capacity.allocatable - capacity.used.total)
                    free[inner.level, base] += amount
                    free[ANYWHERE, base] += amount
        return free


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a placement good.

    Args:
        distinct: whether parts of one requirement that have the same level must get different locations.
        levels: those where touching fewer locations is better, most important first; by default all, outermost first.
        scorer_for: maps a resource's base name to its scorer.
    """

    distinct: bool = False
    levels: Sequence[str] | None = None
    scorer_for: ScorerChoice = scorer_by_name


USUAL_RULES = Rules()


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
    """Packs an objective into one integer to compare and add; each component outweighs the range of all that follow."""

    def __init__(self, locations: Locations, levels: Sequence[str] | None) -> None:
        if levels is None:  # By the depth of their outermost location, then by name.
            depth: dict[str, int] = {}
            for location in sorted(locations.all[1:], key=lambda location: len(location.path)):
                depth.setdefault(location.level, len(location.path))
            levels = sorted(depth, key=lambda level: (depth[level], natural_key(level)))
        self.levels = tuple(levels)
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

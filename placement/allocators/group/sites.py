"""The tree of locations as the search sees it: numbered, with what may change apart from what stays."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from placement.allocators.group.scorers import Phase, Scorer, ScorerChoice, Used, in_units
from placement.allocators.group.tree import Capacity, Location, Path
from placement.allocators.natural_order import natural_key

ROUNDING = 10**12
"""Scores that are no fraction of an allocatable amount are told apart down to one part in this many."""


class Cell(NamedTuple):
    """One allocatable resource of one location."""

    allocatable: int
    scorer: Scorer
    used: Used


@dataclass(slots=True)
class Site:
    """One location.

    Args:
        index: its number; numbers follow the natural order of names, outer locations before those inside.
        parent: the number of the location around it, -1 for the root.
        level: its level.
        path: its names.
        cells: its own resources by base name.
        children: the numbers of the locations directly inside.
        end: one more than the highest number inside.
        keys: how many resources there are here and inside.
        score: the sum of their scores before anything is placed, in parts of ``Sites.scale``.
    """

    index: int
    parent: int
    level: str
    path: Path
    cells: dict[str, Cell]
    children: list[int] = field(default_factory=list)
    end: int = 0
    keys: int = 0
    score: int = 0


class Sites:
    """All locations of a tree; ``sites[0]`` is the root.

    Args:
        root: the tree.
        scorer_for: the scorer of each resource, by its base name.

    Raises:
        ValueError: an amount is negative or two locations beside each other have one level and name.
    """

    def __init__(self, root: Location, scorer_for: ScorerChoice) -> None:
        self._scorer_for = scorer_for
        self.all: list[Site] = []
        self._below: dict[tuple[int, str], list[int]] = {}
        self._scores: dict[tuple[Cell, tuple[int, ...]], int] = {}
        self._add(root, -1, ())
        self.scale = lcm(ROUNDING, *[_denominator(cell) for site in self.all for cell in site.cells.values()])
        self._add_up()

    def _add(self, location: Location, parent: int, path: Path) -> None:
        site = Site(len(self.all), parent, location.level if path else "", path, self._cells(location.capacities, path))
        self.all.append(site)
        seen = set()
        for child in sorted(location.children, key=_order):
            step = (child.level, child.name)
            if step in seen:
                raise ValueError(f"There are two locations {'/'.join(step)} beside each other.")
            seen.add(step)
            site.children.append(len(self.all))
            self._add(child, site.index, (*path, step))
        site.end = len(self.all)

    def _cells(self, capacities: Mapping[str, Capacity], path: Path) -> dict[str, Cell]:
        cells = {}
        for base, capacity in capacities.items():
            if capacity.allocatable < 0 or capacity.used < 0:
                where = "/".join([part for step in path for part in step] + [base])
                raise ValueError(f"What is allocatable or used of {where} is negative.")
            scorer = in_units(self._scorer_for(base), capacity.units)
            cells[base] = Cell(capacity.allocatable, scorer, Used(capacity.used))
        return cells

    def _add_up(self) -> None:
        for site in reversed(self.all):
            inside = [self.all[child] for child in site.children]
            scores = [self.score(cell) for cell in site.cells.values()]
            site.keys = len(scores) + sum([child.keys for child in inside])
            site.score = sum(scores) + sum([child.score for child in inside])

    def score(self, cell: Cell, requested: tuple[int, ...] = ()) -> int:
        """Return the score of a resource in parts of the scale, as it is or after requests of a running container."""
        key = (cell, requested)
        if key not in self._scores:
            verdict = cell.scorer.judge(cell.allocatable, cell.used, requested, Phase.RUNNING)
            self._scores[key] = self.scaled(verdict.score)
        return self._scores[key]

    def scaled(self, score: float | Fraction) -> int:
        """Return a score in parts of the scale.

        Raises:
            ValueError: the score is not in 0..1.
        """
        exact = score if isinstance(score, Fraction) else Fraction(score)
        if not 0 <= exact.numerator <= exact.denominator:
            raise ValueError(f"A scorer returned {score}; scores are in 0..1.")
        return exact.numerator * self.scale // exact.denominator

    def below(self, site: int, level: str) -> list[int]:
        """Return the locations of a level anywhere inside another, in natural order."""
        found = self._below.get((site, level))
        if found is None:
            inside = range(site + 1, self.all[site].end)
            found = self._below[site, level] = [index for index in inside if self.all[index].level == level]
        return found

    def within(self, site: int) -> list[Site]:
        """Return a location and all inside it."""
        return self.all[site : self.all[site].end]

    def trail(self, outer: int, inner: int) -> tuple[int, ...]:
        """Return the locations from below an outer one down to an inner one."""
        steps = []
        while inner != outer:
            steps.append(inner)
            inner = self.all[inner].parent
        return tuple(reversed(steps))

    def free(self, site: int) -> Counter[tuple[str, str]]:
        """Return how much of each (level, resource that adds up) is not in use in a location and inside it."""
        free: Counter[tuple[str, str]] = Counter()
        for inner in self.within(site):
            for base, cell in inner.cells.items():
                if cell.scorer.adds_up:
                    free[inner.level, base] += max(0, cell.allocatable - cell.used.total)
        return free


def levels_inside_out(sites: Iterable[Site]) -> tuple[str, ...]:
    """Return the levels, the innermost first: by how deep their deepest location is, then by name."""
    depth: dict[str, int] = {}
    for site in sites:
        if site.path:
            depth[site.level] = max(depth.get(site.level, 0), len(site.path))
    return tuple(sorted(depth, key=lambda level: (-depth[level], natural_key(level))))


def _order(location: Location) -> tuple[object, object]:
    return natural_key(location.level), natural_key(location.name)


def _denominator(cell: Cell) -> int:
    return max(1, cell.allocatable if cell.scorer.adds_up else cell.allocatable.bit_count())

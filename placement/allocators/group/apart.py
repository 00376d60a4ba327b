"""Demands whose siblings never share a location: assignments from the inside out, exact in polynomial time.

What is inside two locations is independent then. So the best a demand can do at a location is what it gains there
itself and, for its parts of each level, the best assignment to the locations inside; and the parts in the same way.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from placement.allocators.group.assignment import best_assignment, first_assignment
from placement.allocators.group.needs import Form, Need, Needs
from placement.allocators.group.objective import Weights
from placement.allocators.group.scorers import Phase
from placement.allocators.group.sites import Sites


class Value(NamedTuple):
    """What a demand can do at a location at best: what that is worth, and how much of it is score."""

    worth: int
    gain: int


class Apart:
    """One search.

    Args:
        sites: the locations.
        weights: how the objective is packed.
        needs: where demands could go.
        distinct: whether parts of one demand that have one level must not share a location.
    """

    def __init__(self, sites: Sites, weights: Weights, needs: Needs, *, distinct: bool) -> None:
        self._sites = sites
        self._weights = weights
        self._needs = needs
        self._distinct = distinct
        self._values: dict[tuple[Form, int], Value | None] = {}

    def applies(self, containers: Sequence[Need]) -> bool:
        """Tell whether assignments decide.

        Several containers may share locations. And where a level is left out, parts that have different locations may
        still share one around them.
        """
        return len(containers) == 1 and self._is_simple(containers[0])

    def _is_simple(self, need: Need) -> bool:
        levels = self._by_level(need.parts)
        return all([self._are_apart(parts) and self._are_direct(need, parts[0].level) for parts in levels]) and all(
            [self._is_simple(part) for part in need.parts]
        )

    def _by_level(self, parts: Sequence[Need]) -> list[list[Need]]:
        levels = defaultdict(list)
        for part in parts:
            levels[part.level].append(part)
        return list(levels.values())

    def _are_apart(self, parts: Sequence[Need]) -> bool:
        return len(parts) == 1 or self._distinct or self._needs.exclude_each_other(parts)

    def _are_direct(self, need: Need, level: str) -> bool:
        places = self._sites.all
        return all([places[inner].parent == site for site in need.viable for inner in self._sites.below(site, level)])

    @property
    def looks(self) -> int:
        """How many times a demand was tried at a location."""
        return len(self._values)

    def best(self, need: Need, site: int = 0) -> list[tuple[Need, int]] | None:
        """Return the location of a need and of all its parts, or None if there is no way.

        Of equals the parts, in their order, take the first in natural order.
        """
        if self._value(need, site) is None:
            return None
        placed = [(need, site)]
        for parts in self._by_level(need.parts):
            inside = self._sites.below(site, parts[0].level)
            columns = first_assignment(self._worths(parts, inside)) or ()
            for part, column in zip(parts, columns, strict=True):
                placed += self.best(part, inside[column]) or []
        return placed

    def _value(self, need: Need, site: int) -> Value | None:
        key = (need.form, site)
        if key not in self._values:
            self._values[key] = self._work_out(need, site) if site in need.viable else None
        return self._values[key]

    def _work_out(self, need: Need, site: int) -> Value | None:
        own = self._own_gain(need, site)
        inside = [self._inside(parts, site) for parts in self._by_level(need.parts)]
        if own is None or None in inside:
            return None
        values = [value for value in inside if value is not None]
        gain = own + sum([value.gain for value in values])
        before = self._sites.all[site].score
        worth = own * self._weights.score - self._weights.touch[site] + sum([value.worth for value in values])
        # All best ways to place the parts have one gain, because score weighs more than anything else.
        return Value(worth + gain * (2 * before + gain) * self._weights.tightness[site], gain)

    def _own_gain(self, need: Need, site: int) -> int | None:
        """Return what a need itself adds to the sum of scores at a location; None if it does not fit."""
        gain = 0
        for base, amount in need.amounts:
            cell = self._sites.all[site].cells[base]
            verdict = cell.scorer.judge(cell.allocatable, cell.used, (amount,), need.phase)
            if not verdict.fits:
                return None
            if need.phase is Phase.RUNNING:
                gain += self._sites.scaled(verdict.score) - self._sites.score(cell)
        return gain

    def _inside(self, parts: Sequence[Need], site: int) -> Value | None:
        """Return the most that parts of one level are worth inside a location."""
        inside = self._sites.below(site, parts[0].level)
        best = best_assignment(self._worths(parts, inside))
        if best is None:
            return None
        values = [self._value(part, inside[column]) for part, column in zip(parts, best.columns, strict=True)]
        return Value(best.total, sum([value.gain for value in values if value]))

    def _worths(self, parts: Sequence[Need], inside: Sequence[int]) -> list[list[int | None]]:
        values = [[self._value(part, site) for site in inside] for part in parts]
        return [[None if value is None else value.worth for value in row] for row in values]

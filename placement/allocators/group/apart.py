"""Requirements whose siblings never share a location: assignments from the inside out, exact in polynomial time.

The contents of two locations are then independent. So the best a requirement can do at a location is its own gain there
plus, for its parts of each level, the best assignment to the locations inside, and recursively for those parts.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from placement.allocators.assignment import best_assignment, first_assignment
from placement.allocators.group.locations import Locations
from placement.allocators.group.objective import Weights
from placement.allocators.group.requirements import Form, RequirementNode, Requirements
from placement.allocators.group.scorers import Phase
from placement.allocators.group.spread import Spreading, SpreadParts


class Worth(NamedTuple):
    """A requirement's best worth at a location, and the score in it."""

    worth: int
    gain: int


class Apart:
    """One run.

    Args:
        locations: the locations.
        weights: how the objective is packed.
        requirements: the source of ``viable`` locations and sums.
        distinct: whether parts of one requirement that have the same level must not share a location.
    """

    def __init__(self, locations: Locations, weights: Weights, requirements: Requirements, *, distinct: bool) -> None:
        self._locations = locations
        self._weights = weights
        self._requirements = requirements
        self._distinct = distinct
        self._values: dict[tuple[Form, int], Worth | None] = {}
        self._direct: dict[tuple[Form, str], bool] = {}

    def applies(self, containers: Sequence[RequirementNode]) -> bool:
        """Tell whether assignments solve the problem.

        Several containers may share locations. And where a request skips a level, parts in different locations may
        still share an enclosing one; they are then spread, unless there are too many different forms.
        """
        return len(containers) == 1 and self._is_simple(containers[0])

    def _is_simple(self, node: RequirementNode) -> bool:
        levels = self._by_level(node.parts)
        return (
            all([self._are_apart(parts) for parts in levels])
            and (self._all_direct(node, levels) or (len(levels) == 1 and self._may_be_spread(node, levels[0])))
            and all([self._is_simple(part) for part in node.parts])
        )

    def _all_direct(self, node: RequirementNode, levels: Sequence[Sequence[RequirementNode]]) -> bool:
        return all([self._are_direct(node, parts[0].level) for parts in levels])

    def _may_be_spread(self, node: RequirementNode, parts: Sequence[RequirementNode]) -> bool:
        """Tell whether parts can be spread: at a bounded cost, and over locations none of which is inside another."""
        for location in node.viable:
            inside = self._locations.below(location, parts[0].level)
            nested = any([self._locations.below(inner, parts[0].level) for inner in inside])
            if nested or not Spreading.is_cheap(parts, len(inside)):
                return False
        return True

    def _by_level(self, parts: Sequence[RequirementNode]) -> list[list[RequirementNode]]:
        levels = defaultdict(list)
        for part in parts:
            levels[part.level].append(part)
        return list(levels.values())

    def _are_apart(self, parts: Sequence[RequirementNode]) -> bool:
        return len(parts) == 1 or self._distinct or self._requirements.exclude_each_other(parts)

    def _are_direct(self, node: RequirementNode, level: str) -> bool:
        """Tell whether nothing lies between the locations of a requirement and those of its parts."""
        key = (node.form, level)
        if key not in self._direct:
            inside = [(outer, inner) for outer in node.viable for inner in self._locations.below(outer, level)]
            self._direct[key] = all([self._locations.all[inner].parent == outer for outer, inner in inside])
        return self._direct[key]

    @property
    def tries(self) -> int:
        """How many times a requirement was tried at a location."""
        return len(self._values)

    def best(self, node: RequirementNode, location: int = 0) -> list[tuple[RequirementNode, int]] | None:
        """Return the location of a requirement and of all its parts, or None if there is no way.

        Ties go to the parts in their order: each takes the first location in natural order.
        """
        if self._value(node, location) is None:
            return None
        placed = [(node, location)]
        for parts in self._by_level(node.parts):
            for part, inner in zip(parts, self._places(node, parts, location), strict=True):
                placed += self.best(part, inner) or []
        return placed

    def _places(self, node: RequirementNode, parts: Sequence[RequirementNode], location: int) -> Sequence[int]:
        """Return the locations of parts of one level, in the order of the parts."""
        inside = self._locations.below(location, parts[0].level)
        if self._are_direct(node, parts[0].level):
            return [inside[column] for column in first_assignment(self._worths(parts, inside)) or ()]
        spread = self._spread(parts, location)
        assert spread is not None
        return [inner for locations in spread.chosen for inner in locations]

    def _spread(self, parts: Sequence[RequirementNode], location: int) -> SpreadParts | None:
        inside = self._locations.below(location, parts[0].level)
        return Spreading(self._locations, self._weights, parts).best(location, inside, self._value)

    def _value(self, node: RequirementNode, location: int) -> Worth | None:
        key = (node.form, location)
        if key not in self._values:
            self._values[key] = self._work_out(node, location) if location in node.viable else None
        return self._values[key]

    def _work_out(self, node: RequirementNode, location: int) -> Worth | None:
        own = self._own_gain(node, location)
        inside = [self._inside(node, parts, location) for parts in self._by_level(node.parts)]
        if own is None or None in inside:
            return None
        values = [value for value in inside if value is not None]
        gain = own + sum([value.gain for value in values])
        before = self._locations.all[location].score
        worth = own * self._weights.score - self._weights.touch[location] + sum([value.worth for value in values])
        # All best placements of the parts have the same gain, because score outweighs everything else.
        return Worth(worth + gain * (2 * before + gain) * self._weights.tightness[location], gain)

    def _own_gain(self, node: RequirementNode, location: int) -> int | None:
        """Return what a requirement itself adds to the sum of scores at a location; None if it does not fit."""
        gain = 0
        for base, amount in node.amounts:
            capacity = self._locations.all[location].capacities[base]
            verdict = capacity.scorer.judge(capacity.allocatable, capacity.used, (amount,), node.phase)
            if not verdict.fits:
                return None
            if node.phase is Phase.RUNNING:
                gain += self._locations.scaled(verdict.score) - self._locations.score(capacity)
        return gain

    def _inside(self, node: RequirementNode, parts: Sequence[RequirementNode], location: int) -> Worth | None:
        """Return the most that parts of one level can be worth inside a location."""
        if not self._are_direct(node, parts[0].level):
            spread = self._spread(parts, location)
            return None if spread is None else Worth(spread.worth, spread.gain)
        inside = self._locations.below(location, parts[0].level)
        best = best_assignment(self._worths(parts, inside))
        if best is None:
            return None
        values = [self._value(part, inside[column]) for part, column in zip(parts, best.columns, strict=True)]
        return Worth(best.total, sum([value.gain for value in values if value]))

    def _worths(self, parts: Sequence[RequirementNode], inside: Sequence[int]) -> list[list[int | None]]:
        values = [[self._value(part, location) for location in inside] for part in parts]
        return [[None if value is None else value.worth for value in row] for row in values]

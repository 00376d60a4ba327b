"""Requirements whose siblings never share a location: assignments from the inside out, exact in polynomial time.

The contents of two locations are then independent. So the best a requirement can do at a location is its own gain there
plus, for its parts of each level, the best assignment to the locations inside, and recursively for those parts.

Two parts may still share an enclosing location that nobody asked for. It is then paid for once and becomes tighter, so
an assignment does not determine their worth. But parts of one form are interchangeable, so for each enclosing location
it suffices to tabulate the best worth by number of parts of each form (``Spreading``). Without that, eight GPUs
anywhere below switches take a second a host.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from placement.allocators.assignment import best_assignment, first_assignment
from placement.allocators.group.locations import Locations
from placement.allocators.group.objective import Weights
from placement.allocators.group.requirements import Form, RequirementNode, Requirements
from placement.allocators.group.scorers import Phase
from placement.allocators.group.tree import ANYWHERE

MAX_MERGES = 400_000
"""The most pairs of states to merge; beyond that, the search is the better way."""


class Worth(NamedTuple):
    """A requirement's best worth at a location, and the score in it."""

    worth: int
    gain: int


class SpreadParts(NamedTuple):
    """A way to spread some parts over locations.

    Args:
        worth: its worth, including the enclosing locations.
        gain: the part of that which is score.
        chosen: for each form the locations of its parts, ascending.
    """

    worth: int
    gain: int
    chosen: tuple[tuple[int, ...], ...]

    @property
    def rank(self) -> tuple[int, list[int]]:
        """The sort key among ways to spread the same parts: the highest is best, ties by natural order."""
        return self.worth, [-location for locations in self.chosen for location in locations]


PartNumbers = tuple[int, ...]
"""The number of parts of each form."""

SpreadTable = Mapping[PartNumbers, SpreadParts]

ValueOf = Callable[[RequirementNode, int], tuple[int, int] | None]
"""Maps a part and a location to its worth there and the score in it; None if it does not fit."""


class Spreading:
    """Spreads the parts of one level over the locations inside another one.

    Args:
        locations: the locations.
        weights: how the objective is packed.
        parts: the parts, those of one form next to each other.
    """

    def __init__(self, locations: Locations, weights: Weights, parts: Sequence[RequirementNode]) -> None:
        self._locations = locations
        self._weights = weights
        forms: dict[Form, list[RequirementNode]] = defaultdict(list)
        for part in parts:
            forms[part.form].append(part)
        self._forms = list(forms.values())
        self._wanted = tuple([len(alike) for alike in self._forms])
        self._nothing: SpreadTable = {(0,) * len(self._forms): SpreadParts(0, 0, ((),) * len(self._forms))}

    @classmethod
    def is_cheap(cls, parts: Sequence[RequirementNode], columns: int) -> bool:
        """Tell whether spreading this many parts over this many locations stays within ``MAX_MERGES``."""
        counts: dict[Form, int] = defaultdict(lambda: 1)
        for part in parts:
            counts[part.form] += 1
        states = 1
        for count in counts.values():
            states *= count
        return states * states * columns <= MAX_MERGES

    def best(self, outer: int, inside: Sequence[int], value_of: ValueOf) -> SpreadParts | None:
        """Return the best way to spread all parts, or None if there is none.

        Args:
            outer: the location that encloses them all.
            inside: the locations available to the parts; none is inside another.
            value_of: the worth of a part at a location.
        """
        return self._table(outer, sorted(inside), value_of).get(self._wanted)

    def _table(self, outer: int, inside: Sequence[int], value_of: ValueOf) -> SpreadTable:
        """Return the best way to spread each number of parts over some locations inside another one."""
        by_child: dict[int, list[int]] = defaultdict(list)
        for location in inside:
            by_child[self._locations.trail(outer, location)[0]].append(location)
        table = self._nothing
        for child in sorted(by_child):
            if by_child[child] == [child]:
                table = self._merged(table, self._of_one(child, value_of))
            else:
                table = self._merged(table, self._around(child, self._table(child, by_child[child], value_of)))
        return table

    def _of_one(self, location: int, value_of: ValueOf) -> SpreadTable:
        """Return what one location can serve: nothing, or one part of some form."""
        table = dict(self._nothing)
        for index, alike in enumerate(self._forms):
            value = value_of(alike[0], location)
            if value is not None:
                numbers = tuple([int(form == index) for form in range(len(self._forms))])
                chosen = tuple([(location,) if form == index else () for form in range(len(self._forms))])
                table[numbers] = SpreadParts(*value, chosen)
        return table

    def _around(self, location: int, table: SpreadTable) -> SpreadTable:
        """Add the cost of touching an enclosing location, and its gain in tightness, to a table."""
        before = self._locations.all[location].score
        touch, tightness = self._weights.touch[location], self._weights.tightness[location]
        return {
            numbers: one._replace(worth=one.worth - touch + one.gain * (2 * before + one.gain) * tightness)
            if any(numbers)
            else one
            for numbers, one in table.items()
        }

    def _merged(self, left: SpreadTable, right: SpreadTable) -> SpreadTable:
        """Combine the tables of disjoint locations, the left ones first in natural order."""
        best: dict[PartNumbers, SpreadParts] = {}
        for here, one in left.items():
            for there, other in right.items():
                numbers = tuple(map(sum, zip(here, there, strict=True)))
                if any([number > most for number, most in zip(numbers, self._wanted, strict=True)]):
                    continue
                worth, known = one.worth + other.worth, best.get(numbers)
                if known is not None and worth < known.worth:
                    continue
                chosen = tuple([some + more for some, more in zip(one.chosen, other.chosen, strict=True)])
                both = SpreadParts(worth, one.gain + other.gain, chosen)
                if known is None or both.rank > known.rank:
                    best[numbers] = both
        return best


# Without it, four shares of different GPUs of sixteen in use take 1.9 s of CPU for one host instead of 16 ms.
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

        Several containers may share locations, and so may whatever may be anywhere. And where a request skips a level,
        parts in different locations may still share an enclosing one; they are then spread, unless there are too many
        different forms.
        """
        return len(containers) == 1 and self._is_simple(containers[0])

    def _is_simple(self, node: RequirementNode) -> bool:
        levels = self._by_level(node.parts)
        return (
            all([part.level != ANYWHERE for part in node.parts])
            and all([self._are_apart(parts) for parts in levels])
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

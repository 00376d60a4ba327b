"""Spreads parts of one level across enclosing locations that nobody asked for: a knapsack from the inside out.

Two parts may share an enclosing location, which is then paid for once and becomes tighter; hence an assignment of parts
to locations does not determine their worth. But parts of one form are interchangeable and the contents of two locations
are independent: for each enclosing location, it suffices to tabulate the best worth by number of parts of each form.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from placement.allocators.group.locations import Locations
from placement.allocators.group.objective import Weights
from placement.allocators.group.requirements import Form, RequirementNode

MAX_MERGES = 400_000
"""The most pairs of states to merge; beyond that, the search is the better way."""


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


Numbers = tuple[int, ...]
"""The number of parts of each form."""

SpreadTable = Mapping[Numbers, SpreadParts]

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
        best: dict[Numbers, SpreadParts] = {}
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

"""The worth of each set of requirements inside each location: dynamic programming over the tree of locations.

Where locations may be shared, an assignment does not determine what requirements are worth. But the contents of two
locations are independent, and a location's own gain depends only on which requirements it serves. So for each location
it suffices to know the best way to place each set of requirements inside it. This pays where there are few sets.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from placement.allocators.budget import Budget
from placement.allocators.group.bar import Bar, SetTable
from placement.allocators.group.judges import judge_of
from placement.allocators.group.locations import Locations
from placement.allocators.group.objective import Weights
from placement.allocators.group.own_sets import OwnSet, OwnSets
from placement.allocators.group.requirements import RequirementNode
from placement.allocators.group.sets import Sets

MAX_SETS = 1100
"""Beyond this many sets, a search is the better way; ten requirements that all differ have about as many."""

MERGES_OF_A_STEP = 16
"""How many pairs of sets can be merged in the time of one step."""

Own = Mapping[int, Sequence[tuple[OwnSet, int]]]
"""Location -> the sets that it can serve itself, with their ranks."""


class SetTables:
    """One run of the dynamic programme.

    Args:
        locations: the locations.
        weights: how the objective is packed.
        containers: the outermost requirements in search order.
        sets: the sets of the requirements inside them.
        distinct: whether parts of one requirement that have the same level must not share a location.
        budget: the steps to spend; once it has been hit, the result is meaningless.
    """

    def __init__(
        self,
        locations: Locations,
        weights: Weights,
        containers: Sequence[RequirementNode],
        sets: Sets,
        *,
        distinct: bool,
        budget: Budget,
    ) -> None:
        self._locations = locations
        self._weights = weights
        self._containers = containers
        self._sets = sets
        self._budget = budget
        self._bar: Bar | None = None
        # The low bits of a rank encode natural order: a row for each kind, the last kind lowest, and in it a digit for
        # each location, the last location lowest, that counts how many of the kind it has.
        self._latest = sorted(frozenset[int]().union(*[kind.nodes[0].viable for kind in sets.kinds]), reverse=True)
        self._digit = max([len(kind.nodes) for kind in sets.kinds], default=0).bit_length()
        self._row = self._digit * len(self._latest)
        self._order = self._row * len(sets.kinds)
        orders = [1 << self._row * place for place in reversed(range(len(sets.kinds)))]
        self._own_sets = OwnSets(locations, sets, orders, distinct=distinct)

    def best(self) -> list[tuple[RequirementNode, int]] | None:
        """Return the location of each requirement, or None if there is no way.

        Ties go to the requirements in their order: each takes the first location in natural order.
        """
        own: Own = {location: self._ranked(location, place) for place, location in enumerate(self._latest)}
        if not any([kind.inside for kind in self._sets.kinds]):
            own = self._promising(own)
        rank = self._inside(0, own).get(self._sets.everything)
        return None if rank is None or not self._fits_outside() else self._places(rank)

    def _ranked(self, location: int, place: int) -> list[tuple[OwnSet, int]]:
        found = self._own_sets.of(location)
        self._budget.take(len(found) // 2)
        score, order, shift = self._weights.score, self._order, self._digit * place
        return [(one, (one.gain * score << order) + (one.order << shift)) for one in found]

    def _promising(self, own: Own) -> Own:
        """Drop sets that cannot beat a solution found by ignoring enclosing locations.

        Touching an enclosing location only costs, and tightness never makes up for it.
        """
        touch, order = self._weights.touch, self._order
        tables = {
            location: {one.own: rank - (touch[location] << order) for one, rank in ranked}
            for location, ranked in own.items()
        }
        apart = self._all_merged(tables.values())
        known = self._worth(own, apart)
        if known is None:
            return {}
        expected = {numbers: rank >> order << order for numbers, rank in apart.items()}
        bar = self._bar = Bar(self._sets, expected, known - self._weights.rest << order)
        return {
            location: [pair for pair in ranked if bar.is_reached(pair[0].own, tables[location][pair[0].own])]
            for location, ranked in own.items()
        }

    def _worth(self, own: Own, apart: SetTable) -> int | None:
        """Return the actual worth of the solution that ignored enclosing locations; None if there is none."""
        everything = self._sets.everything
        if everything not in apart or self._budget.was_hit:
            return None
        one_of = {id(node): kind.one for kind in self._sets.kinds for node in kind.nodes}
        served: dict[int, int] = defaultdict(int)
        for node, location in self._places(apart[everything])[len(self._containers) :]:
            served[location] += one_of[id(node)]
        only = {location: [pair for pair in own[location] if pair[0].own == served[location]] for location in served}
        rank = self._inside(0, only).get(everything)
        return None if rank is None else rank >> self._order

    def _fits_outside(self) -> bool:
        """Tell whether the root can serve what the containers ask for outside all other locations."""
        judge = judge_of(self._locations.all[0], list(enumerate(self._containers)), self._locations)
        load = judge.empty
        for index in range(len(self._containers)):
            more = judge.with_one(load, index)
            if more is None:
                return False
            load = more
        return True

    def _places(self, rank: int) -> list[tuple[RequirementNode, int]]:
        """Decode the location of each requirement from the rank of the full set."""
        places = [(node, 0) for node in self._containers]
        for kind in reversed(self._sets.kinds):
            found: list[int] = []
            for location in self._latest:
                found += [location] * (rank & (1 << self._digit) - 1)
                rank >>= self._digit
            places += zip(kind.nodes, reversed(found), strict=True)
        return places

    def _inside(self, location: int, own: Own) -> SetTable:
        """Return the best rank of each set inside a location."""
        return self._all_merged([self._table(child, own) for child in self._locations.all[location].children])

    def _all_merged(self, tables: Iterable[SetTable]) -> SetTable:
        """Combine the tables of disjoint locations."""
        table: SetTable = {0: 0}
        for other in self._that_matter([some for some in tables if some]):
            best = dict(table)
            for there, more in other.items():
                self._add(best, table, (there, 0), more)
            table = best
        return table

    def _that_matter(self, tables: list[SetTable]) -> list[SetTable]:
        """Drop dominated entries: a set never needs a location if enough others that are better for it remain."""
        if len(tables) <= self._sets.leaves // 2:
            return tables
        by_set: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, table in enumerate(tables):
            for numbers, rank in table.items():
                by_set[numbers].append((rank, index))
        found: list[SetTable] = [{} for _table in tables]
        for numbers, ranks in by_set.items():
            ranks.sort(reverse=True)
            # Every other location in use has at least one childless requirement that this set lacks.
            for rank, index in ranks[: self._sets.leaves - self._sets.leaves_in(numbers) + 1]:
                found[index][numbers] = rank
        return [table for table in found if table]

    def _table(self, location: int, own: Own) -> SetTable:
        """Return the best rank of each nonempty set at or inside a location."""
        inside = self._inside(location, own)
        table = dict(inside)
        for one, rank in own.get(location, ()):
            self._add(table, inside, (one.own, one.parts), rank)
        del table[0]
        return self._around(location, table)

    def _add(self, best: SetTable, table: SetTable, added: tuple[int, int], rank: int) -> None:
        """Extend each compatible set of a table by another set, keeping the best rank of each result.

        Args:
            best: the results.
            table: the table.
            added: the set to add, and the parts of it that must already be present.
            rank: the rank of the added set.
        """
        more, parts = added
        beside = (self._bar or self._sets).beside(more + parts) if len(table) > 1 else [0]
        if not self._budget.take(1 + len(beside) // MERGES_OF_A_STEP):
            return
        for other in beside:
            here = other + parts
            if here not in table:
                continue
            together, both = table[here] + rank, here + more
            if both not in best:
                if self._bar is None or self._bar.is_reached(both, together):
                    best[both] = together
            elif together > best[both]:
                best[both] = together

    def _around(self, location: int, table: SetTable) -> SetTable:
        """Add the cost of touching a location, and its gain in tightness, to a table."""
        before = self._locations.all[location].score
        touch, tightness = self._weights.touch[location], self._weights.tightness[location]
        found = {}
        for numbers, rank in table.items():
            gain = self._weights.gain_in(rank >> self._order)
            after = rank + (gain * (2 * before + gain) * tightness - touch << self._order)
            if self._bar is None or self._bar.is_reached(numbers, after):
                found[numbers] = after
        return found

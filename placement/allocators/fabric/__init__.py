"""Gangs on a fabric: assigns members to sites, such as hosts, that lie in places, such as racks.

Members go to the fewest places and there to the fewest sites, ties by the order of sites. The search starts from bounds
on what sites hold. It then asks the chosen sites whether they really hold their members, records each refusal and
starts over. This ends with an optimal answer, and asks few sites.

>>> sites = [Site(1, "a", [2]), Site(2, "a", [2]), Site(3, "b", [1]), Site(4, "b", [3])]
>>> gang = MembersByKind(members=(4,), amounts=[[1]])
>>> fabric = Fabric(sites, gang, lambda postings: [])
>>> [(site.name, mix) for site, mix in fabric.together(most_places=1, budget=Budget(100))]
[(1, (2,)), (2, (2,))]
>>> [(site.name, mix) for site, mix in fabric.together_each([(2,), (2,)], budget=Budget(100))]
[(1, (2,)), (4, (2,))]
"""

from collections.abc import Hashable, Mapping, Sequence

from placement.allocators import Budget
from placement.allocators.fabric.search import Holds, MembersByKind, Mix, Posting, Site, fewest_sites

WeightMatrix = Sequence[Sequence[int | None]]
"""For each row the weight of each column; None forbids the pair."""


def best_assignment(weights: WeightMatrix) -> tuple[int, ...] | None:
    """Return the column of each row so that the sum of weights is maximal, or None if there is no way.

    Kuhn's Hungarian method, row by row, O(rows^2 x columns). Weights are integers of any size, so that several
    objectives can be packed into one number.

    >>> best_assignment([[5, 4], [5, 1]])
    (1, 0)
    >>> best_assignment([[5, None], [5, None]]) is None
    True
    """
    row_of: dict[int, int] = {}
    row_prices = [max([weight for weight in row if weight is not None], default=0) for row in weights]
    column_prices = [0] * max(map(len, weights), default=0)
    for row in range(len(weights)):
        reached = _cheapest_path(row, weights, row_of, (row_prices, column_prices))
        if not reached:
            return None
        *matched, last = reached
        distance = reached[last][0]
        # Prices change so that the path becomes tight; those admitted so far keep an optimal assignment.
        row_prices[row] -= distance
        for column in matched:
            row_prices[row_of[column]] -= distance - reached[column][0]
            column_prices[column] += distance - reached[column][0]
        while last >= 0:
            before = reached[last][1]
            row_of[last] = row_of.get(before, row)
            last = before
    column_of = {row: column for column, row in row_of.items()}
    return tuple([column_of[row] for row in range(len(weights))])


def _cheapest_path(
    row: int, weights: WeightMatrix, row_of: Mapping[int, int], prices: tuple[Sequence[int], Sequence[int]]
) -> dict[int, tuple[int, int]]:
    """Return the columns reached from a new row, the nearest first, up to the first that has no row; {} if none has.

    Each comes with its distance and the column from whose row it was reached, -1 for the new row.
    """
    reached: dict[int, tuple[int, int]] = {}
    waiting: dict[int, tuple[int, int]] = {}
    last, distance = -1, 0
    while last < 0 or last in row_of:
        from_row = row_of.get(last, row)
        for column, weight in enumerate(weights[from_row]):
            if weight is not None and column not in reached:
                price = distance + prices[0][from_row] + prices[1][column] - weight
                if column not in waiting or price < waiting[column][0]:
                    waiting[column] = price, last
        if not waiting:
            return {}
        # Among equals, a column without a row ends the search at once.
        last = min(waiting, key=lambda column: (waiting[column][0], column in row_of, column))
        reached[last] = waiting.pop(last)
        distance = reached[last][0]
    return reached


class Fabric:
    """Sites in places, for one gang.

    Args:
        sites: the sites, in order of preference; a place ranks with its first site.
        holds: the oracle for what sites hold.
    """

    def __init__(self, sites: Sequence[Site], gang: MembersByKind, holds: Holds) -> None:
        self._gang = gang
        self._holds = holds
        self._places: dict[Hashable, list[Site]] = {}
        for site in sites:
            self._places.setdefault(site.place, []).append(site)

    def together(self, *, most_places: int, budget: Budget) -> list[Posting] | None:
        """Return who goes where, in the fewest places, or None; better or any may be missing if the budget is hit."""
        places = [*self._places.values()]
        while True:
            postings = fewest_sites(places, self._gang, most_places=most_places, budget=budget)
            if postings is None or not self._refused(postings):
                return postings

    def together_each(self, groups: Sequence[Mix], *, budget: Budget) -> list[Posting] | None:
        """Return who goes where with each group in one place and no two groups in the same, or None.

        ``groups`` has how many members of each kind each group has.
        """
        names = [*self._places]
        ways_known: dict[tuple[Mix, Hashable], list[Posting] | None] = {}
        while True:
            for group in {*groups}:
                for name in names:
                    if (group, name) not in ways_known:
                        gang = MembersByKind(group, self._gang.amounts)
                        ways_known[group, name] = fewest_sites([self._places[name]], gang, most_places=1, budget=budget)
            if len(groups) > len(names):
                return None
            # The fewest sites, then the first places.
            later = len(groups) * len(names) + 1
            ways = [[ways_known[group, name] for name in names] for group in groups]
            chosen = best_assignment(
                [[None if way is None else -len(way) * later - at for at, way in enumerate(row)] for row in ways]
            )
            if chosen is None:
                return None
            postings = [
                posting
                for group, at in zip(groups, chosen, strict=True)
                for posting in ways_known[group, names[at]] or ()
            ]
            refused = self._refused(postings)
            if not refused:
                return postings
            ways_known = {key: way for key, way in ways_known.items() if key[1] not in refused}

    def roomiest(self, *, budget: Budget) -> tuple[Hashable, int]:
        """Return the place that holds the most members of a single-kind gang, and how many; asks sites."""
        while True:
            bounds = self.upper_bounds(0)
            best = max(bounds, key=bounds.__getitem__)
            gang = MembersByKind((bounds[best],), self._gang.amounts)
            postings = fewest_sites([self._places[best]], gang, most_places=1, budget=budget)
            if not bounds[best] or postings is None or not self._refused(postings):
                return best, bounds[best]

    def upper_bounds(self, kind: int) -> dict[Hashable, int]:
        """Return an upper bound on how many members of a kind each place holds."""
        numbers = {}
        for name, sites in self._places.items():
            of_parts: dict[Hashable, int] = {}
            for site in sites:
                of_parts[site.summed_as] = max(of_parts.get(site.summed_as, 0), site.bound(kind, self._gang))
            numbers[name] = sum(of_parts.values())
        return numbers

    def _refused(self, postings: Sequence[Posting]) -> set[Hashable]:
        """Ask sites whether they hold their members, record refusals, and return the places affected."""
        refused = self._holds(postings)
        for site, too_many in refused:
            site.refused.append(too_many)
        return {site.place for site, _mix in refused}

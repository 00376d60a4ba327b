"""Precomputed bounds for all requirements of one level together, and their bookkeeping during the search."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from placement.allocators.assignment import best_assignment
from placement.allocators.group.locations import Locations, ScoredCapacity
from placement.allocators.group.picks import Pick
from placement.allocators.group.state import State

MAX_VACANCIES = 128
"""With more vacancies than this on a level, prices are not computed and the bounds are weaker."""


class Component(NamedTuple):
    """Requirements and locations that every placement with the best score assigns to each other only."""

    picks: list[Pick]
    locations: set[int]


class Layer:
    """The requirements of one level that count towards the score, and the locations of that level.

    Locations have dual prices from an assignment of all requirements at once, so that a good location wanted by many
    requirements is not counted for each of them in the bound.

    Args:
        locations: the locations.
        picks: the requirements, at least one.

    Attributes:
        gains: pick -> location -> the most by which the sum of scores can rise.
        vacancies: location -> the most requirements it can serve.
        prices: location -> the price of a vacancy.
        promises: pick -> its best gain net of the vacancy's price.
        is_possible: False if the locations cannot serve the requirements.
    """

    def __init__(self, locations: Locations, picks: Sequence[Pick]) -> None:
        self._locations = locations
        self.level = picks[0].node.level
        self.picks = picks
        self.columns = sorted(frozenset().union(*[pick.node.viable for pick in picks]))
        self.gains = {
            pick.index: {location: self._gain(pick, location) for location in pick.node.viable} for pick in picks
        }
        self.vacancies = {location: self._vacancies_at(location) for location in self.columns}
        self.prices = dict.fromkeys(self.columns, 0)
        self.is_possible = self._find_prices()
        self.promises = {
            pick: max([gain - self.prices[location] for location, gain in row.items()])
            for pick, row in self.gains.items()
        }
        self.components = self._components()

    def _gain(self, pick: Pick, location: int) -> int:
        return sum(
            [self._rise(self._locations.all[location].capacities[base], amount) for base, amount in pick.node.amounts]
        )

    def _rise(self, capacity: ScoredCapacity, amount: int) -> int:
        if not capacity.scorer.diminishing:
            return self._locations.scale
        return self._locations.score(capacity, (amount,)) - self._locations.score(capacity)

    def _vacancies_at(self, location: int) -> int:
        asked = [dict(pick.node.amounts) for pick in self.picks if location in pick.node.viable]
        vacancies = len(asked)
        for base, capacity in self._locations.all[location].capacities.items():
            least = min([amounts.get(base, 0) for amounts in asked])
            if least and capacity.scorer.adds_up:
                vacancies = min(vacancies, (capacity.allocatable - capacity.used.total) // least)
        return vacancies

    def _find_prices(self) -> bool:
        """Compute the prices; return False if there are not enough vacancies."""
        total = sum(self.vacancies.values())
        if total < len(self.picks) or total > MAX_VACANCIES:
            return total >= len(self.picks)
        columns = [location for location in self.columns for _vacancy in range(self.vacancies[location])]
        best = best_assignment([[self.gains[pick.index].get(location) for location in columns] for pick in self.picks])
        if best is None:
            return False
        self.prices.update(zip(columns, best.column_prices, strict=True))
        return True

    @property
    def priced(self) -> int:
        """The total price of all vacancies."""
        return sum([self.prices[location] * vacancies for location, vacancies in self.vacancies.items()])

    def tight_locations(self, pick: Pick) -> set[int]:
        """Return the locations where a requirement gets its full promise; elsewhere the score falls short."""
        promise = self.promises[pick.index]
        return {
            location for location, gain in self.gains[pick.index].items() if gain - self.prices[location] == promise
        }

    def _components(self) -> list[Component]:
        found: list[Component] = []
        for pick in self.picks:
            picks, locations = [pick], self.tight_locations(pick)
            apart = []
            for other in found:
                if locations.isdisjoint(other.locations):
                    apart.append(other)
                else:
                    picks += other.picks
                    locations |= other.locations
            found = [*apart, Component(picks, locations)]
        return found

    def best_gains(self, depths: int) -> list[dict[int, int]]:
        """Return by depth: location -> the most a later requirement gains there, given that the score is best.

        Args:
            depths: the number of picks.
        """
        rows = {pick.index: pick for pick in self.picks}
        best = [dict.fromkeys(self.columns, 0)]
        for depth in reversed(range(depths)):
            current = best[-1]
            if depth in rows:
                row = self.gains[depth]
                current = current | {
                    location: max(current[location], row[location]) for location in self.tight_locations(rows[depth])
                }
            best.append(current)
        best.reverse()
        return best


class Balance:
    """What some locations still have of something, and what some requirements yet to be placed want of it.

    Args:
        locations: the locations.
        wanted: pick -> how much it wants.
        offered: location -> how much it has.
    """

    def __init__(self, locations: Locations, wanted: dict[int, int], offered: dict[int, int]) -> None:
        self._locations = locations
        self.wanted = wanted
        self._offered = offered
        self._inside = [0] * len(locations.all)
        for location, amount in offered.items():
            self._change(location, amount)
        backwards = [wanted.get(depth, 0) for depth in reversed(range(max(wanted) + 1))]
        self._left = list(accumulate(backwards, initial=0))
        self._left.reverse()

    def take(self, pick: int, location: int, count: int) -> None:
        """Take what a pick wants from a location; with a count of -1, give it back."""
        # A pick that went to a location not offered here takes nothing from this balance.
        if location in self._offered:
            self._change(location, -count * self.wanted[pick])

    def _change(self, location: int, amount: int) -> None:
        while location >= 0:
            self._inside[location] += amount
            location = self._locations.all[location].parent

    def shortage(self, depth: int, level: Sequence[int], state: State) -> int:
        """Return a lower bound on how many untouched locations of a level the remaining picks have to touch.

        Touched locations give all they have first, then the untouched ones that have the most.
        """
        left = self._left[depth] if depth < len(self._left) else 0
        if not left:
            return 0
        untouched = []
        for location in level:
            if state.records[location][1]:
                left -= self._inside[location]
            else:
                untouched.append(self._inside[location])
        untouched.sort(reverse=True)
        count = 0
        while left > 0 and count < len(untouched):
            left -= untouched[count]
            count += 1
        return count


def balances_of(layer: Layer, locations: Locations) -> list[list[Balance]]:
    """Return a layer's balances by component: one for vacancies, and one per resource with unequal demands."""
    return [_balances(layer, component, locations) for component in layer.components]


def _balances(layer: Layer, component: Component, locations: Locations) -> list[Balance]:
    picks, inside = component
    found = [
        Balance(
            locations,
            {pick.index: 1 for pick in picks},
            {location: layer.vacancies[location] for location in inside},
        )
    ]
    for base in sorted({base for pick in picks for base, _amount in pick.node.amounts}):
        wanted = {pick.index: dict(pick.node.amounts).get(base, 0) for pick in picks}
        capacities = {
            location: locations.all[location].capacities[base]
            for location in inside
            if base in locations.all[location].capacities
        }
        # With equal demands, the balance of vacancies implies this one.
        if len(set(wanted.values())) > 1 and all([capacity.scorer.adds_up for capacity in capacities.values()]):
            free = {
                location: max(0, capacity.allocatable - capacity.used.total)
                for location, capacity in capacities.items()
            }
            found.append(Balance(locations, wanted, free))
    return found

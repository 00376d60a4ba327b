"""What is known before the search about all requirements of one level together, and bounds them while it goes on."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from placement.allocators.assignment import best_assignment
from placement.allocators.group.locations import Locations, ScoredCapacity
from placement.allocators.group.picks import Pick
from placement.allocators.group.state import State

MOST_VACANCIES = 128
"""With more vacancies than this on one level no prices are worked out; the bounds are weaker then."""


class Component(NamedTuple):
    """Requirements and the locations they should get: every best score keeps them among themselves."""

    picks: list[Pick]
    locations: set[int]


class Layer:
    """The requirements of one level that count for the score, and the locations of that level.

    Locations have prices, worked out by assigning all requirements at once. So the best score of many that want one
    good location is not bounded by promising it to each of them.

    Args:
        locations: the locations.
        picks: the requirements, at least one.

    Attributes:
        gains: by pick and location the most that the sum of scores can rise.
        vacancies: by location how many of the requirements it can serve at most.
        prices: by location the price of a vacancy.
        promises: by pick the most that it is worth beyond the price of its vacancy.
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
        """Set the prices; False if there are not enough vacancies."""
        total = sum(self.vacancies.values())
        if total < len(self.picks) or total > MOST_VACANCIES:
            return total >= len(self.picks)
        columns = [location for location in self.columns for _vacancy in range(self.vacancies[location])]
        best = best_assignment([[self.gains[pick.index].get(location) for location in columns] for pick in self.picks])
        if best is None:
            return False
        self.prices.update(zip(columns, best.column_prices, strict=True))
        return True

    @property
    def priced(self) -> int:
        """The prices of all vacancies together."""
        return sum([self.prices[location] * vacancies for location, vacancies in self.vacancies.items()])

    def tight_locations(self, pick: Pick) -> set[int]:
        """Return the locations where a requirement gets all that is promised; elsewhere the score falls short."""
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
        """Return for each depth and location the most that a requirement to come, if the score is best, gains there.

        Args:
            depths: how many picks there are.
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
    """How much of something some locations still have, and how much some requirements still to come want of it.

    Args:
        locations: the locations.
        wanted: by pick, how much it wants.
        offered: by location, how much it has.
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
        """Take what a pick wants from a location, or give it back if the count is -1."""
        # A requirement that has gone to a location outside takes nothing from those that are looked at.
        if location in self._offered:
            self._change(location, -count * self.wanted[pick])

    def _change(self, location: int, amount: int) -> None:
        while location >= 0:
            self._inside[location] += amount
            location = self._locations.all[location].parent

    def shortage(self, depth: int, level: Sequence[int], state: State) -> int:
        """Return how many locations of a level must at least be touched besides those that are.

        Those that are touched give all they have, then the ones that have most.
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
    """Return for each component of a layer what must suffice: vacancies, and resources asked for in unequal amounts."""
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
        # Vacancies say the same already where all ask for the same.
        if len(set(wanted.values())) > 1 and all([capacity.scorer.adds_up for capacity in capacities.values()]):
            free = {
                location: max(0, capacity.allocatable - capacity.used.total)
                for location, capacity in capacities.items()
            }
            found.append(Balance(locations, wanted, free))
    return found

"""What is known before the search about all demands of one level together, and what bounds them while it goes on."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from placement.allocators.group.assignment import best_assignment
from placement.allocators.group.sites import Cell, Sites
from placement.allocators.group.state import State
from placement.allocators.group.steps import Step

MOST_PLACES = 128
"""With more places than this on one level no prices are worked out; the bounds are weaker then."""


class Component(NamedTuple):
    """Demands and the locations they should get: every best score keeps them among themselves."""

    steps: list[Step]
    sites: set[int]


class Layer:
    """The demands of one level that count for the score, and the locations of that level.

    Locations have prices, worked out by assigning all demands at once. So the best score of many demands that want
    one good location is not bounded by promising it to each of them.

    Args:
        sites: the locations.
        steps: the demands, at least one.

    Attributes:
        gains: by step and location the most that the sum of scores can rise.
        places: by location how many of the demands it can serve at most.
        prices: by location the price of a place.
        promises: by step the most that it is worth beyond the price of its place.
        is_possible: False if the locations cannot serve the demands.
    """

    def __init__(self, sites: Sites, steps: Sequence[Step]) -> None:
        self._sites = sites
        self.level = steps[0].need.level
        self.steps = steps
        self.columns = sorted(frozenset().union(*[step.need.viable for step in steps]))
        self.gains = {step.index: {site: self._gain(step, site) for site in step.need.viable} for step in steps}
        self.places = {site: self._places_at(site) for site in self.columns}
        self.prices = dict.fromkeys(self.columns, 0)
        self.is_possible = self._find_prices()
        self.promises = {
            step: max([gain - self.prices[site] for site, gain in row.items()]) for step, row in self.gains.items()
        }
        self.components = self._components()

    def _gain(self, step: Step, site: int) -> int:
        return sum([self._rise(self._sites.all[site].cells[base], amount) for base, amount in step.need.amounts])

    def _rise(self, cell: Cell, amount: int) -> int:
        if not cell.scorer.diminishing:
            return self._sites.scale
        return self._sites.score(cell, (amount,)) - self._sites.score(cell)

    def _places_at(self, site: int) -> int:
        asked = [dict(step.need.amounts) for step in self.steps if site in step.need.viable]
        places = len(asked)
        for base, cell in self._sites.all[site].cells.items():
            least = min([amounts.get(base, 0) for amounts in asked])
            if least and cell.scorer.adds_up:
                places = min(places, (cell.allocatable - cell.used.total) // least)
        return places

    def _find_prices(self) -> bool:
        """Set the prices; False if there are not enough places."""
        total = sum(self.places.values())
        if total < len(self.steps) or total > MOST_PLACES:
            return total >= len(self.steps)
        columns = [site for site in self.columns for _place in range(self.places[site])]
        best = best_assignment([[self.gains[step.index].get(site) for site in columns] for step in self.steps])
        if best is None:
            return False
        self.prices.update(zip(columns, best.column_prices, strict=True))
        return True

    @property
    def priced(self) -> int:
        """The prices of all places together."""
        return sum([self.prices[site] * places for site, places in self.places.items()])

    def tight_sites(self, step: Step) -> set[int]:
        """Return the locations where a demand gets all that is promised; elsewhere the score falls short."""
        promise = self.promises[step.index]
        return {site for site, gain in self.gains[step.index].items() if gain - self.prices[site] == promise}

    def _components(self) -> list[Component]:
        found: list[Component] = []
        for step in self.steps:
            steps, sites = [step], self.tight_sites(step)
            apart = []
            for other in found:
                if sites.isdisjoint(other.sites):
                    apart.append(other)
                else:
                    steps += other.steps
                    sites |= other.sites
            found = [*apart, Component(steps, sites)]
        return found

    def best_gains(self, depths: int) -> list[dict[int, int]]:
        """Return for each depth and location the most that a demand still to come, if the score is best, gains there.

        Args:
            depths: how many steps there are.
        """
        rows = {step.index: step for step in self.steps}
        best = [dict.fromkeys(self.columns, 0)]
        for depth in reversed(range(depths)):
            current = best[-1]
            if depth in rows:
                row = self.gains[depth]
                current = current | {site: max(current[site], row[site]) for site in self.tight_sites(rows[depth])}
            best.append(current)
        best.reverse()
        return best


class Supply:
    """How much of something some locations still have, and how much some demands still to come want of it.

    Args:
        sites: the locations.
        wanted: by step, how much it wants.
        offered: by location, how much it has.
    """

    def __init__(self, sites: Sites, wanted: dict[int, int], offered: dict[int, int]) -> None:
        self._sites = sites
        self.wanted = wanted
        self._offered = offered
        self._inside = [0] * len(sites.all)
        for site, amount in offered.items():
            self._change(site, amount)
        backwards = [wanted.get(depth, 0) for depth in reversed(range(max(wanted) + 1))]
        self._left = list(accumulate(backwards, initial=0))
        self._left.reverse()

    def take(self, step: int, site: int, count: int) -> None:
        """Take what a step wants from a location, or give it back if the count is -1."""
        # A demand that has gone to a location outside takes nothing from those that are looked at.
        if site in self._offered:
            self._change(site, -count * self.wanted[step])

    def _change(self, site: int, amount: int) -> None:
        while site >= 0:
            self._inside[site] += amount
            site = self._sites.all[site].parent

    def shortage(self, depth: int, level: Sequence[int], state: State) -> int:
        """Return how many locations of a level must at least be touched besides those that are.

        Those that are touched give all they have, then the ones that have most.
        """
        left = self._left[depth] if depth < len(self._left) else 0
        if not left:
            return 0
        untouched = []
        for site in level:
            if state.records[site][1]:
                left -= self._inside[site]
            else:
                untouched.append(self._inside[site])
        untouched.sort(reverse=True)
        count = 0
        while left > 0 and count < len(untouched):
            left -= untouched[count]
            count += 1
        return count


def supplies_of(layer: Layer, sites: Sites) -> list[list[Supply]]:
    """Return for each component of a layer what must suffice: places, and resources asked for in unequal amounts."""
    return [_supplies(layer, component, sites) for component in layer.components]


def _supplies(layer: Layer, component: Component, sites: Sites) -> list[Supply]:
    steps, places = component
    found = [Supply(sites, {step.index: 1 for step in steps}, {site: layer.places[site] for site in places})]
    for base in sorted({base for step in steps for base, _amount in step.need.amounts}):
        wanted = {step.index: dict(step.need.amounts).get(base, 0) for step in steps}
        cells = {site: sites.all[site].cells[base] for site in places if base in sites.all[site].cells}
        # Places say the same already where all ask for the same.
        if len(set(wanted.values())) > 1 and all([cell.scorer.adds_up for cell in cells.values()]):
            free = {site: max(0, cell.allocatable - cell.used.total) for site, cell in cells.items()}
            found.append(Supply(sites, wanted, free))
    return found

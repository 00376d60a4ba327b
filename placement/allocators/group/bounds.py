"""Upper bounds on what the remaining picks can add to the objective.

Each component has a bound of its own. Those after the score hold only for placements with the best score. That is
enough, because a loss of score outweighs all that follows it.
"""

from collections import defaultdict
from collections.abc import Sequence

from placement.allocators.group.layers import Balance, Layer, balances_of
from placement.allocators.group.locations import Locations
from placement.allocators.group.objective import Weights
from placement.allocators.group.picks import Pick
from placement.allocators.group.state import State

Fill = tuple[int, int, int, int]
"""(gain per unit of filling a location, its capacity to be filled, its sum of scores before, its factor)."""


class Bounds:
    """Follows the search and bounds what is still to come.

    Args:
        locations: the locations.
        weights: how the objective is packed.
        picks: all picks, in order.
    """

    def __init__(self, locations: Locations, weights: Weights, picks: Sequence[Pick]) -> None:
        self._locations = locations
        self._weights = weights
        self._layers = _layers(locations, picks)
        self.is_possible = all([layer.is_possible for layer in self._layers])
        self._layer_of = {pick.index: number for number, layer in enumerate(self._layers) for pick in layer.picks}
        self._promises = self._sums_of_promises(len(picks))
        self._priced = sum([layer.priced for layer in self._layers])
        self._vacancies = [dict(layer.vacancies) for layer in self._layers]
        self._best_gains = [layer.best_gains(len(picks)) for layer in self._layers]
        self._balances = [balances_of(layer, locations) for layer in self._layers]
        self._wants = self._balances_by_pick()
        self._levels = [(level, locations.below(0, level), self._layers_inside(level)) for level in weights.levels]
        self._depths = _by_depth(locations)
        self._tightest = len(locations.all) * weights.square**2
        self._rises = all([min(row.values()) >= 0 for layer in self._layers for row in layer.gains.values()])

    def _layers_inside(self, level: str) -> list[int]:
        """Return the numbers of the layers that cannot be served without touching a location of a level."""
        covered = {
            inner.index for location in self._locations.below(0, level) for inner in self._locations.within(location)
        }
        return [number for number, layer in enumerate(self._layers) if covered.issuperset(layer.columns)]

    def _sums_of_promises(self, depths: int) -> list[int]:
        """Return by depth the sum of the promises to all picks from there on."""
        sums = [0]
        for depth in reversed(range(depths)):
            number = self._layer_of.get(depth)
            sums.append(sums[-1] + (0 if number is None else self._layers[number].promises[depth]))
        sums.reverse()
        return sums

    def _balances_by_pick(self) -> dict[int, list[Balance]]:
        wants = defaultdict(list)
        for components in self._balances:
            for balances in components:
                for balance in balances:
                    for pick in balance.wanted:
                        wants[pick].append(balance)
        return wants

    def take(self, pick: int, location: int) -> None:
        """Follow the search forwards: a pick is given a location."""
        self._change(pick, location, 1)

    def give_back(self, pick: int, location: int) -> None:
        """Follow the search backwards: a pick gives its location back."""
        self._change(pick, location, -1)

    def _change(self, pick: int, location: int, count: int) -> None:
        number = self._layer_of.get(pick)
        if number is None:
            return
        self._priced -= count * self._layers[number].prices[location]
        self._vacancies[number][location] -= count
        for balance in self._wants[pick]:
            balance.take(pick, location, count)

    def above(self, depth: int, floor: int, state: State) -> int:
        """Return an upper bound on what all picks from a depth on can add; it is left loose once it is below the floor.

        Args:
            depth: the next pick.
            floor: only a worth above it is of interest.
            state: the state before the pick.
        """
        gain = self._promises[depth] + self._priced
        bound = gain * self._weights.score + self._tightest
        if bound <= floor:
            return bound
        bound -= self._touching(depth, state)
        if bound <= floor or not self._rises:
            return bound
        return bound - self._tightest + self._tightness(depth, gain, state)

    def _touching(self, depth: int, state: State) -> int:
        """Return a lower bound on the cost of the locations yet to be touched."""
        cost = 0
        for level, locations, layers in self._levels:
            most = 0
            for number in layers:
                short = [
                    max([balance.shortage(depth, locations, state) for balance in balances])
                    for balances in self._balances[number]
                ]
                # Components share no location of their own level, but may share enclosing ones.
                most = max(most, sum(short) if self._layers[number].level == level else max(short))
            if most:
                cost += most * self._weights.touch[locations[0]]
        return cost

    def _tightness(self, depth: int, gain: int, state: State) -> int:
        """Return an upper bound on the gain in tightness: the fewest locations, filled as full as possible."""
        room = self._room(depth)
        factors = self._weights.tightness
        total = 0
        for locations in self._depths:
            fills = []
            for location in locations:
                most = min(gain, room[location])
                if most:
                    score = state.records[location][3]
                    fills.append(((2 * score + most) * factors[location], most, score, factors[location]))
            total += most_tightness(fills, gain)
        return total

    def _room(self, depth: int) -> list[int]:
        """Return by location the most by which its sum of scores can rise."""
        room = [0] * len(self._locations.all)
        for vacancies, best_gains in zip(self._vacancies, self._best_gains, strict=True):
            for location, gain in best_gains[depth].items():
                room[location] += gain * vacancies[location]
        for location in range(len(room) - 1, 0, -1):
            if room[location]:
                room[self._locations.all[location].parent] += room[location]
        return room


def most_tightness(fills: list[Fill], gain: int) -> int:
    """Return an upper bound on the gain in squares when the sum of scores rises by ``gain``, spread over locations.

    Squares are convex: a partial fill gains less than its fraction of a full one. So the locations with the highest
    gain per unit when full are filled first, and the last one counts in proportion. If all locations are of one size
    and become equally full, no other distribution is better, and the last one's gain is computed exactly.
    """
    fills.sort(reverse=True)
    alike = len({(score + most, factor) for _slope, most, score, factor in fills}) <= 1
    total = 0
    for slope, most, score, factor in fills:
        if gain < most and alike:
            return total + gain * (2 * score + gain) * factor
        if gain <= most:
            return total + gain * slope
        total += most * slope
        gain -= most
    return total


def _layers(locations: Locations, picks: Sequence[Pick]) -> list[Layer]:
    levels = defaultdict(list)
    for pick in picks:
        if pick.counts and pick.node.amounts:
            levels[pick.node.level].append(pick)
    return [Layer(locations, found) for found in levels.values()]


def _by_depth(locations: Locations) -> list[list[int]]:
    """Return the locations at each depth below the root."""
    depths = defaultdict(list)
    for location in locations.all[1:]:
        depths[len(location.path)].append(location.index)
    return list(depths.values())

"""Upper bounds on what the steps still to come can add to the objective.

Each part of the objective has a bound of its own. Those of what comes after the score hold for the placements with the
best score; that suffices, because less score weighs more than all that follows it could make up for.
"""

from collections import defaultdict
from collections.abc import Sequence

from placement.allocators.group.layers import Layer, Supply, supplies_of
from placement.allocators.group.objective import Weights
from placement.allocators.group.sites import Sites
from placement.allocators.group.state import State
from placement.allocators.group.steps import Step

Fill = tuple[int, int, int, int]
"""(what filling a location gains by unit, by how much it can be filled, its sum of scores before, its factor)."""


class Bounds:
    """Follows the search and bounds what is to come.

    Args:
        sites: the locations.
        weights: how the objective is packed.
        steps: all steps, in order.
    """

    def __init__(self, sites: Sites, weights: Weights, steps: Sequence[Step]) -> None:
        self._sites = sites
        self._weights = weights
        self._layers = _layers(sites, steps)
        self.is_possible = all([layer.is_possible for layer in self._layers])
        self._layer_of = {step.index: number for number, layer in enumerate(self._layers) for step in layer.steps}
        self._promises = self._sums_of_promises(len(steps))
        self._priced = sum([layer.priced for layer in self._layers])
        self._places = [dict(layer.places) for layer in self._layers]
        self._best_gains = [layer.best_gains(len(steps)) for layer in self._layers]
        self._supplies = [supplies_of(layer, sites) for layer in self._layers]
        self._wants = self._supplies_by_step()
        self._levels = [(level, sites.below(0, level), self._layers_inside(level)) for level in weights.levels]
        self._depths = _by_depth(sites)
        self._tightest = len(sites.all) * weights.square**2
        self._rises = all([min(row.values()) >= 0 for layer in self._layers for row in layer.gains.values()])

    def _layers_inside(self, level: str) -> list[int]:
        """Return the numbers of the layers that cannot be served without touching a location of a level."""
        covered = {inner.index for site in self._sites.below(0, level) for inner in self._sites.within(site)}
        return [number for number, layer in enumerate(self._layers) if covered.issuperset(layer.columns)]

    def _sums_of_promises(self, depths: int) -> list[int]:
        """Return for each depth the sum of what is promised to all steps from there on."""
        sums = [0]
        for depth in reversed(range(depths)):
            number = self._layer_of.get(depth)
            sums.append(sums[-1] + (0 if number is None else self._layers[number].promises[depth]))
        sums.reverse()
        return sums

    def _supplies_by_step(self) -> dict[int, list[Supply]]:
        wants = defaultdict(list)
        for components in self._supplies:
            for supplies in components:
                for supply in supplies:
                    for step in supply.wanted:
                        wants[step].append(supply)
        return wants

    def take(self, step: int, site: int) -> None:
        """Follow the search: a step is given a location."""
        self._change(step, site, 1)

    def give_back(self, step: int, site: int) -> None:
        """Follow the search back."""
        self._change(step, site, -1)

    def _change(self, step: int, site: int, count: int) -> None:
        number = self._layer_of.get(step)
        if number is None:
            return
        self._priced -= count * self._layers[number].prices[site]
        self._places[number][site] -= count
        for supply in self._wants[step]:
            supply.take(step, site, count)

    def above(self, depth: int, floor: int, state: State) -> int:
        """Return what all steps from a depth on can add at most; what is at most the floor need not be exact.

        Args:
            depth: the next step.
            floor: the worth that is of interest only if it is exceeded.
            state: the state before the step.
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
        """Return the least that the locations cost that must be touched still."""
        cost = 0
        for level, places, layers in self._levels:
            most = 0
            for number in layers:
                short = [
                    max([supply.shortage(depth, places, state) for supply in supplies])
                    for supplies in self._supplies[number]
                ]
                # Components have no location of their own level in common, but may share those around.
                most = max(most, sum(short) if self._layers[number].level == level else max(short))
            if most:
                cost += most * self._weights.touch[places[0]]
        return cost

    def _tightness(self, depth: int, gain: int, state: State) -> int:
        """Return the most that tightness can gain: as few locations as possible become as full as possible."""
        room = self._room(depth)
        factors = self._weights.tightness
        total = 0
        for places in self._depths:
            fills = []
            for site in places:
                most = min(gain, room[site])
                if most:
                    score = state.records[site][3]
                    fills.append(((2 * score + most) * factors[site], most, score, factors[site]))
            total += most_tightness(fills, gain)
        return total

    def _room(self, depth: int) -> list[int]:
        """Return for each location the most that the sum of scores in it can rise."""
        room = [0] * len(self._sites.all)
        for places, best_gains in zip(self._places, self._best_gains, strict=True):
            for site, gain in best_gains[depth].items():
                room[site] += gain * places[site]
        for site in range(len(room) - 1, 0, -1):
            if room[site]:
                room[self._sites.all[site].parent] += room[site]
        return room


def most_tightness(fills: list[Fill], gain: int) -> int:
    """Return the most that the squares can gain if the sum of scores rises by a gain, spread over locations.

    Squares are convex: filling a location by less than can be gains less than that share of what filling it gains. So
    the locations where a full one gains most by unit are filled first, the last one for its share. If all are of one
    size and become equally full, no other way to spread the gain is better, and what the last one gains is exact.
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


def _layers(sites: Sites, steps: Sequence[Step]) -> list[Layer]:
    levels = defaultdict(list)
    for step in steps:
        if step.counts and step.need.amounts:
            levels[step.need.level].append(step)
    return [Layer(sites, found) for found in levels.values()]


def _by_depth(sites: Sites) -> list[list[int]]:
    """Return the locations at each depth of the tree below the root."""
    depths = defaultdict(list)
    for site in sites.all[1:]:
        depths[len(site.path)].append(site.index)
    return list(depths.values())

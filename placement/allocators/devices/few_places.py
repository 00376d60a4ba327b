"""Finds the best way on a host with few places: tries the sets of places that may be touched, cheapest first.

With the set of touched places fixed, so is its cost. Groups that take nothing from each other and are not tied by a
rule are then independent and searched one by one, so that their counts do not multiply. Most groups simply get the
devices that fit best; the knapsack runs only if these lack room for all or break a rule.
"""

from collections.abc import Sequence

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.place_sets import PlaceSets
from placement.allocators.devices.rivals import Rivals
from placement.allocators.devices.search import Knapsack
from placement.allocators.devices.search_memo import SearchMemo, form_of_search
from placement.allocators.devices.supplies import EVERYWHERE
from placement.allocators.devices.tables import Limits


class FewPlaces:
    """The search for the best way to serve one request on one host with few places.

    Args:
        sets: the sets of places.
        own: the options' own costs.
        limits: the steps to spend, and how many states of a table to keep.
        memo: what was found for this request on other hosts; it grows.
    """

    def __init__(self, sets: PlaceSets, *, own: OwnCosts, limits: Limits, memo: SearchMemo | None = None) -> None:
        self._sets = sets
        self._own = own
        self._limits = limits
        self._memo = memo
        self._budget = limits.budget
        self.is_complete = sets.are_few
        """Whether the result, or that there is none, is proven."""

    def best(self) -> int | None:
        """Return the cost of the best way; None if there is none."""
        everyone = [Rivals(one, self._own) for one in self._sets.rivalries]
        least = self._least(EVERYWHERE, everyone) if self._sets.may_serve(EVERYWHERE) else None
        if least is None:
            return None
        best: int | None = None
        for cost, region in self._sets.by_cost:
            if not self.is_complete or (best is not None and cost + least >= best):
                break
            found = self._best_inside(region, cost, everyone, best)
            best = best if found is None else found
        return best

    def _least(self, region: int, everyone: Sequence[Rivals]) -> int | None:
        """Return a lower bound on the cost of all groups in a region; None if any of them has too few devices there."""
        self._budget.take(self._sets.steps)
        costs = [one.least(region) for one in everyone]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def _best_inside(self, region: int, cost: int, everyone: Sequence[Rivals], best: int | None) -> int | None:
        """Return the cost of the best way in a region, if less than ``best``; ``cost`` is that of touching it."""
        least = self._least(region, everyone)
        if least is None:
            return None
        cost += least
        for rivals in everyone:
            if best is not None and cost >= best:
                return None
            if not rivals.are_content(region):
                cost -= rivals.least(region) or 0
                found = self._searched(rivals, region, None if best is None else best - cost)
                if found is None:
                    return None
                cost += found
        return cost if best is None or cost < best else None

    def _searched(self, rivals: Rivals, region: int, limit: int | None) -> int | None:
        """Return the least cost of serving some rivals in a region."""
        options = rivals.rivalry.inside(region)
        if self._memo is None:
            return self._search(rivals, options, limit)
        form = form_of_search(self._sets.host, rivals.rivalry, options, self._own)
        known = self._memo.get(form)
        if known is not None:
            return known.cost(options, self._own)
        cost = self._search(rivals, options, None)
        if self.is_complete:
            self._memo.remember(form, cost, options, self._own)
        return cost

    def _search(self, rivals: Rivals, options: Sequence[DeviceOption], limit: int | None) -> int | None:
        limits = self._limits._replace(cost=limit)
        host, alone = self._sets.host, rivals.rivalry.alone
        search = Knapsack(host, alone, options, own=self._own, most=1, limits=limits, counts_places=False)
        costs = search.run(options)
        self.is_complete &= not (search.tables.is_cut or search.tables.is_over)
        return costs[0] if costs else None

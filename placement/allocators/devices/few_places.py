"""Finds the best way on a host with few places: tries the sets of places that may be touched, cheapest first.

With the set of touched places fixed, so is its cost. Groups that take nothing from each other and are not tied by a
rule are then independent and searched one by one, so that their counts do not multiply. Most groups simply get the
devices that fit best; the knapsack runs only if these lack room for all or break a rule.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from placement.allocators.devices.nesting import PlacePath, nesting
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.request import Host, Request
from placement.allocators.devices.rivals import EVERYWHERE, Rivals, has_room_alone, rivals_of
from placement.allocators.devices.search import Knapsack
from placement.allocators.devices.search_memo import SearchMemo, form_of_search
from placement.allocators.devices.supplies import PlacedOption
from placement.allocators.devices.tables import Limits

MAX_PLACES = 4
"""With up to this many innermost places, all sets of them are tried."""


class FewPlaces:
    """The search for the best way to serve one request on one host with few places.

    Args:
        host: the host.
        request: the request, without twins.
        options: the devices that may serve the groups.
        usable: the options that some way can use.
        own: the options' own costs.
        limits: the steps to spend, and how many states of a table to keep.
        memo: what was found for this request on other hosts; it grows.
    """

    def __init__(
        self,
        host: Host,
        request: Request,
        options: Sequence[DeviceOption],
        *,
        usable: Sequence[DeviceOption],
        own: OwnCosts,
        limits: Limits,
        memo: SearchMemo | None = None,
    ) -> None:
        self._host = host
        self._request = request
        self._options = options
        self._usable = usable
        self._own = own
        self._limits = limits
        self._memo = memo
        self._budget = limits.budget
        self._counted = len(host.levels) - host.uncounted
        taking = [self._innermost(one) for one in usable if request.groups[one.group].takes]
        self._places = {path: 1 << n for n, path in enumerate([one for one in dict.fromkeys(taking) if any(one)])}
        paths = {option.device.path for option in options}
        self.are_few = len(self._places) <= MAX_PLACES and nesting(paths, len(host.levels)) is not None
        """Whether this search applies."""
        self.is_complete = self.are_few
        """Whether the result, or that there is none, is proven."""

    def best(self) -> int | None:
        """Return the cost of the best way; None if there is none."""
        everyone = rivals_of(self._host, self._request, [*self._placed()], own=self._own)
        least = self._least(EVERYWHERE, everyone)
        if least is None:
            return None
        best: int | None = None
        for cost, region in sorted(self._regions()):
            if not self.is_complete or (best is not None and cost + least >= best):
                break
            found = self._best_inside(region, cost, everyone, best)
            best = best if found is None else found
        return best

    def _placed(self) -> Iterator[PlacedOption]:
        """Yield the options whose device has room for them."""
        for option in self._usable:
            group = self._request.groups[option.group]
            if has_room_alone(option, group):
                place = self._places.get(self._innermost(option), 0) if group.takes else 0
                yield PlacedOption(self._own.of[option.number], place, option)

    def _innermost(self, option: DeviceOption) -> PlacePath:
        return option.device.path[: self._counted]

    def _regions(self) -> Iterator[tuple[int, int]]:
        """Yield all sets of places with the cost of touching them, which grows with the number of devices there.

        At each level, touching no place costs as much as touching one.
        """
        devices_in: dict[tuple[int, str], set[str]] = defaultdict(set)
        for option in self._options:
            for level, place in enumerate(self._innermost(option)):
                if place is not None:
                    devices_in[level, place].add(option.device.whole)
        packing = self._own.packing
        costs = {key: packing.touched[key[0]] + len(some) * packing.free[key[0]] for key, some in devices_in.items()}
        for number in range(len(self._places) + 1):
            for paths in combinations(self._places, number):
                touched = {(level, place) for path in paths for level, place in enumerate(path) if place is not None}
                levels = {level for level, _place in touched}
                nowhere = sum([unit for level, unit in enumerate(packing.touched) if level not in levels])
                yield nowhere + sum([costs[one] for one in touched]), sum([self._places[path] for path in paths])

    def _least(self, region: int, everyone: Sequence[Rivals]) -> int | None:
        """Return a lower bound on the cost of all groups in a region; None if it certainly has too little for them."""
        self._budget.take(len(self._usable))
        costs = [one.least(region) for one in everyone]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        return sum(known) if all([one.are_content(region) or one.may_be_served(region) for one in everyone]) else None

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
        options = rivals.inside(region)
        if self._memo is None:
            return self._search(rivals, options, limit)
        form = form_of_search(self._host, rivals, options)
        known = self._memo.get(form)
        if known is not None:
            return known.cost(options, self._own)
        cost = self._search(rivals, options, None)
        if self.is_complete:
            self._memo.remember(form, cost, options, self._own)
        return cost

    def _search(self, rivals: Rivals, options: Sequence[DeviceOption], limit: int | None) -> int | None:
        limits = self._limits._replace(cost=limit)
        search = Knapsack(self._host, rivals.alone, options, own=self._own, most=1, limits=limits, counts_places=False)
        costs = search.run(options)
        self.is_complete &= not (search.tables.is_cut or search.tables.is_over)
        return costs[0] if costs else None

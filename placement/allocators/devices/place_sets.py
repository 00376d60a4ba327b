"""The sets of places of a host that a request may touch, and what touching each of them costs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

from placement.allocators.devices.costs import Costs
from placement.allocators.devices.nesting import PlacePath, nesting
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.request import Host, Request
from placement.allocators.devices.rivalry import Rivalry, has_room_alone, rivalries_of
from placement.allocators.devices.supplies import PlacedOption

MAX_PLACES = 4
"""With up to this many innermost places, all sets of them are tried."""


class PlaceSets:
    """The sets of places of one host that one request may touch, whichever devices fit best.

    Args:
        host: the host.
        request: the request, without twins.
        options: the devices that may serve the groups.
        usable: the options that some way can use.
        packing: the layout of costs.
    """

    def __init__(
        self,
        host: Host,
        request: Request,
        options: Sequence[DeviceOption],
        *,
        usable: Sequence[DeviceOption],
        packing: Costs,
    ) -> None:
        self.host = host
        self._request = request
        self._options = options
        self._usable = usable
        self._packing = packing
        self._counted = len(host.levels) - host.uncounted
        taking = [self._innermost(one) for one in usable if request.groups[one.group].takes]
        self._places = {path: 1 << n for n, path in enumerate([one for one in dict.fromkeys(taking) if any(one)])}
        paths = {option.device.path for option in options}
        self.are_few = len(self._places) <= MAX_PLACES and nesting(paths, len(host.levels)) is not None
        """Whether all of them can be tried."""

    @property
    def steps(self) -> int:
        """How many steps it takes to look at one set."""
        return len(self._usable)

    @cached_property
    def rivalries(self) -> Sequence[Rivalry]:
        """The groups, in sets that are independent of each other within given places."""
        return rivalries_of(self.host, self._request, self._placed())

    def may_serve(self, region: int) -> bool:
        """Tell whether a region may have enough for all groups."""
        return all([one.may_be_served(region) for one in self.rivalries])

    @cached_property
    def by_cost(self) -> Sequence[tuple[int, int]]:
        """The sets that may have enough for all groups, as bits, each with the cost of touching it; the cheapest first.

        That cost grows with the number of devices there. Touching no place of a level costs as much as touching one.
        """
        devices_in: dict[tuple[int, str], set[str]] = defaultdict(set)
        for option in self._options:
            for level, place in enumerate(self._innermost(option)):
                if place is not None:
                    devices_in[level, place].add(option.device.whole)
        packing, found = self._packing, []
        costs = {key: packing.touched[key[0]] + len(some) * packing.free[key[0]] for key, some in devices_in.items()}
        for number in range(len(self._places) + 1):
            for paths in combinations(self._places, number):
                touched = {(level, place) for path in paths for level, place in enumerate(path) if place is not None}
                levels = {level for level, _place in touched}
                nowhere = sum([unit for level, unit in enumerate(packing.touched) if level not in levels])
                region = sum([self._places[path] for path in paths])
                if self.may_serve(region):
                    found.append((nowhere + sum([costs[one] for one in touched]), region))
        return sorted(found)

    def _placed(self) -> Iterator[PlacedOption]:
        """Yield the options whose device has room for them."""
        for option in self._usable:
            group = self._request.groups[option.group]
            if has_room_alone(option, group):
                yield PlacedOption(self._places.get(self._innermost(option), 0) if group.takes else 0, option)

    def _innermost(self, option: DeviceOption) -> PlacePath:
        return option.device.path[: self._counted]

"""Memo of the device allocator: a search in some places of a host, reused wherever the same has to be searched again.

Hardly two hosts in use may be alike, but the places that they consist of are: a NUMA node with two NICs has nothing,
one or both of them in use, and for a request for NICs no more than that matters.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.plan import DevicePlan
from placement.allocators.devices.request import Host, Request
from placement.allocators.devices.rivalry import Rivalry
from placement.allocators.devices.table_memo import TableMemo

MAX_SEARCHES = 10_000
"""The most searches to remember for one request."""

MAX_PLANS = 1_000
"""The most plans to remember for one request."""


class BestOfPlaces(NamedTuple):
    """The best way to serve some groups with some options; nothing is chosen if there is none.

    Args:
        chosen: the positions of the chosen options among all of them.
        missed: for each level, how many wishes about it that concern several devices at once are not met.
    """

    chosen: Sequence[int]
    missed: Sequence[int] = ()

    def cost(self, options: Sequence[DeviceOption], own: OwnCosts) -> int | None:
        """Return its cost with these options, in the order of those that were searched; None if there is no way."""
        if not self.chosen:
            return None
        missed = [number * unit for number, unit in zip(self.missed, own.packing.missed, strict=False)]
        return sum(missed) + sum([own.of[options[place].number] for place in self.chosen])


NO_WAY = BestOfPlaces(())


class SearchMemo(dict[Hashable, BestOfPlaces]):
    """The best ways found for one request on all hosts so far, by the canonical form of what was searched."""

    def __init__(self) -> None:
        super().__init__()
        self._plans: dict[Hashable, DevicePlan] = {}
        self.tables = TableMemo()
        """The tables of places, from searches of hosts as a whole."""

    def plan(self, host: Host, request: Request, form: Hashable) -> DevicePlan:
        """Return the plan for hosts of this form, of which one is given."""
        known = self._plans.get(form)
        if known is None:
            known = DevicePlan(host, request)
            if len(self._plans) < MAX_PLANS:
                self._plans[form] = known
        return known

    def remember(self, form: Hashable, cost: int | None, options: Sequence[DeviceOption], own: OwnCosts) -> None:
        """Remember the cost that a search with some options has found, None for no way, while there is room."""
        if len(self) >= MAX_SEARCHES:
            return
        if cost is None:
            self[form] = NO_WAY
            return
        numbers = {*own.packing.chosen(cost)}
        chosen = [place for place, option in enumerate(options) if option.number in numbers]
        by_rules = cost - sum([own.of[options[place].number] for place in chosen])
        self[form] = BestOfPlaces(chosen, own.packing.objective(by_rules).missed)


def form_of_search(host: Host, rivalry: Rivalry, options: Sequence[DeviceOption], own: OwnCosts) -> Hashable:
    """Return the canonical form of a search for some groups: all that matters, with names replaced by numbers.

    Names matter only by which of them are the same and, for ties, by their order, which is that of the options.
    """
    numbers: dict[str | None, int] = {None: -1}
    number, groups = numbers.setdefault, rivalry.groups
    devices: dict[str, Hashable] = {}
    drawn: list[Hashable] = []
    for option in options:
        device, group = option.device, groups[option.group]
        name = device.name
        if name not in devices:
            path = tuple([number(place, len(numbers)) for place in device.path])
            devices[name] = path, tuple(device.room.items()), number(device.whole, len(numbers))
        meets = group.meets.get(name)
        drawn.append((option.group, option.turn, number(name, len(numbers)), own.misfits[group.label][name], meets))
    return host.levels, rivalry.form, tuple(devices.values()), tuple(drawn)

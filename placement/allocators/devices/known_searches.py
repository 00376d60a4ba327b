"""What was found out about groups in some places of a host, read off for all places where it is the same again.

Hosts of which hardly two are alike are made of places that are: a NUMA node with two NICs is in one of few states.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from placement.allocators.devices.known_tables import KnownTables
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.request import Host
from placement.allocators.devices.rivals import Rivals

MAX_SEARCHES = 10_000
"""So many are remembered for one request."""


class BestOfPlaces(NamedTuple):
    """The best way to serve some groups with some options; nothing is chosen if there is none.

    Args:
        chosen: which of the options, by their order.
        missed: for each level how often wishes about it are not met, by more than one device.
    """

    chosen: Sequence[int]
    missed: Sequence[int] = ()

    def cost(self, options: Sequence[DeviceOption], own: OwnCosts) -> int | None:
        """Return what it costs with options like these, None if there is no way."""
        if not self.chosen:
            return None
        missed = [number * unit for number, unit in zip(self.missed, own.packing.missed, strict=False)]
        return sum(missed) + sum([own.of[options[place].number] for place in self.chosen])


NO_WAY = BestOfPlaces(())


class KnownSearches(dict[Hashable, BestOfPlaces]):
    """What was found for one request on any of its hosts, by the forms of what was searched."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = KnownTables()
        """The tables of places where hosts were searched as a whole."""

    def remember(self, form: Hashable, cost: int | None, options: Sequence[DeviceOption], own: OwnCosts) -> None:
        """Remember what a search with some options came to, while there is room."""
        if len(self) >= MAX_SEARCHES:
            return
        if cost is None:
            self[form] = NO_WAY
            return
        numbers = {*own.packing.chosen(cost)}
        chosen = [place for place, option in enumerate(options) if option.number in numbers]
        by_rules = cost - sum([own.of[options[place].number] for place in chosen])
        self[form] = BestOfPlaces(chosen, own.packing.objective(by_rules).missed)


def form_of_search(host: Host, rivals: Rivals, options: Sequence[DeviceOption]) -> Hashable:
    """Return what tells searches for some groups apart, names aside: of these, which are the same, and their order."""
    numbers: dict[str | None, int] = {None: -1}
    number, groups = numbers.setdefault, rivals.groups
    devices: dict[str, Hashable] = {}
    drawn: list[Hashable] = []
    for option in options:
        device, group = option.device, groups[option.group]
        name = device.name
        if name not in devices:
            path = tuple([number(place, len(numbers)) for place in device.path])
            devices[name] = path, tuple(device.room.items()), number(device.whole, len(numbers))
        meets = group.meets.get(name)
        drawn.append((option.group, option.turn, number(name, len(numbers)), group.options[name], meets))
    return host.levels, rivals.form, tuple(devices.values()), tuple(drawn)

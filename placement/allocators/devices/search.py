"""The device allocator's search: a knapsack over the tree of places, exact and polynomial.

Only counts matter. The table of a place has a state for each combination of counts, such as "two GPUs and one NIC", and
the cheapest way to take that many of the devices inside. Two places side by side are merged by adding each state of
one to each state of the other; states that the devices outside cannot complete are dropped (``pruning``). Once a place
is complete, the rules about it are applied. So the work grows with devices x (counts)^2 rather than with the number of
combinations: eight GPUs and eight NICs on sixteen switches take milliseconds.
"""

from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from placement.allocators.devices.device_table import DeviceTable
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.place_rules import PlaceRules, SearchLayout
from placement.allocators.devices.plan import DevicePlan
from placement.allocators.devices.pruning import AllOrNone, joined
from placement.allocators.devices.request import Device, DividedCards, Host, nesting
from placement.allocators.devices.tables import SearchLimits, Table, Tables

_TableOf = tuple[Sequence[Device], Table]
"""Some devices, and their table."""


class _Outside(NamedTuple):
    """What the table of some devices depends on besides the devices.

    Args:
        spare: by group, the options of all devices beyond what the group wants; negative if there are too few.
        all_or_none: groups of which these devices serve all or none.
    """

    spare: Sequence[int]
    all_or_none: tuple[AllOrNone, ...] = ()


class Knapsack:
    """The search for one request on one host.

    Args:
        plan: the request and the host.
        most: the number of ways to find.
        limits: the limits of the search.
    """

    def __init__(self, plan: DevicePlan, *, most: int, limits: SearchLimits) -> None:
        host, options, self._request = plan.host, plan.options, plan.request
        self._most = most
        self._costs = plan.costs
        self._devices = list({option.device.name: option.device for option in options}.values())
        by_card = any([group.by_card for group in self._request.groups])
        self._cards = DividedCards(self._devices if by_card else ())
        layout = SearchLayout(host, plan.costs, _partial_levels(host, options), len(self._cards), most)
        self._rules = PlaceRules(self._request, layout)
        self._device_table = DeviceTable(self._request, self._rules, plan.own_costs(), self._cards)
        self._options: dict[str, list[DeviceOption]] = defaultdict(list)
        for option in options:
            self._options[option.device.name].append(option)
        supply = Counts([option.group for option in options])
        self._spare = [supply[index] - group.count for index, group in enumerate(self._request.groups)]
        order = nesting({device.path for device in self._devices}, len(host.levels))
        self._has_nested_places = order is not None
        self._order = order or range(len(host.levels))
        # Recording the choice lowers a cost by less than this.
        limit = None if limits.cost is None else limits.cost + self._costs.of_choices
        self._tables = Tables(self._rules.counters, most=most, limits=limits._replace(cost=limit))

    @property
    def is_cut(self) -> bool:
        """Whether states were dropped because of the width, so that a better way may have been missed."""
        return self._tables.is_cut

    @property
    def is_complete(self) -> bool:
        """Whether the budget sufficed, and the host is one for which the search is exact: places do not overlap."""
        return not self._tables.is_over and self._has_nested_places

    def run(self) -> list[int]:
        """Return the costs of the best ways to serve the request, in ascending order."""
        table = self._table(self._devices, 0, _Outside(self._spare))
        is_enough, of_whole = self._rules.counters.is_enough, self._costs.of_whole
        enough = [of_whole(cost) for state, costs in table.items() if is_enough(state) for cost in costs]
        return [] if self._tables.is_over else sorted(enough)[: self._most]

    def _table(self, devices: Sequence[Device], depth: int, outside: _Outside) -> Table:
        """Return the table of devices that are in the same places at the outermost ``depth`` levels."""
        parts = self._parts(devices, depth, outside)
        table: Table = {0: [0]}
        spare = [*outside.spare]
        for number, (part, other) in enumerate(parts, 1):
            for device in part:
                for option in self._options[device.name]:
                    spare[option.group] -= 1
            all_or_none = outside.all_or_none if number == len(parts) else ()
            table = self._tables.merged(table, other, self._rules.pruner.pruning(spare, all_or_none))
        return table

    def _parts(self, devices: Sequence[Device], depth: int, outside: _Outside) -> Sequence[_TableOf]:
        """Divide such devices by their places at the next level, or one by one; return each set with its table."""
        level = self._order[depth] if depth < len(self._order) else None
        places: dict[str | None, list[Device]] = defaultdict(list)
        for device in devices:
            places[device.name if level is None else device.path[level]].append(device)
        if len(places) > 1:
            outside = outside._replace(all_or_none=())
        if level is None:
            table_of = self._device_table.table
            parts = [([one], table_of(self._options[one.name], self._tables, outside.all_or_none)) for one in devices]
        else:
            parts = [(inside, self._closed(place, inside, depth, outside)) for place, inside in places.items()]
        return self._in_cards(parts) if self._rules.by_card else parts

    def _closed(self, place: str | None, devices: Sequence[Device], depth: int, outside: _Outside) -> Table:
        """Return the table of a place, with its rules applied; or of the devices that are in none."""
        if place is None:
            return self._table(devices, depth + 1, outside)
        level, rules = self._order[depth], self._rules
        all_or_none = joined([*outside.all_or_none, *rules.all_or_none[level]])
        table = self._table(devices, depth + 1, outside._replace(all_or_none=all_or_none))
        self._tables.budget.take(len(table) * (1 + rules.rules_at(level)))
        done = self._cards.inside(devices)
        return rules.closed(table, level, devices=len({device.whole for device in devices}), done=done)

    def _in_cards(self, parts: Sequence[_TableOf]) -> Sequence[_TableOf]:
        """Combine the parts that belong to one card, because some groups want different cards."""
        combined: dict[object, _TableOf] = {}
        for number, (devices, table) in enumerate(parts):
            cards = {device.whole for device in devices}
            card = cards.pop() if len(cards) == 1 else number
            if card in combined:
                others, before = combined[card]
                combined[card] = [*others, *devices], self._tables.on_one_card(before, table, self._rules.by_card)
            else:
                combined[card] = devices, table
        return list(combined.values())


def _partial_levels(host: Host, options: Sequence[DeviceOption]) -> tuple[int, ...]:
    """Return the counted levels at which some devices are in a place and others in none.

    At these, the cheapest way in one part of a host need not belong to the cheapest way in all of it: touching no place
    is free, but so is touching the first one. So states tell whether any place is touched, and both kinds are kept.
    """
    counted = range(len(host.levels) - host.uncounted)
    return tuple([level for level in counted if len({option.device.path[level] is None for option in options}) > 1])

"""The device allocator's search: a knapsack over the tree of places, exact and polynomial.

Only counts matter. The table of a place has a state for each combination of counts, such as "two GPUs and one NIC", and
the cheapest way to take that many of the devices inside. Two places side by side are merged by adding each state of
one to each state of the other; states that the devices outside cannot complete are dropped (``pruning``). Once a place
is complete, the rules about it are applied. So the work grows with devices x (counts)^2 rather than with the number of
combinations: eight GPUs and eight NICs on sixteen switches take milliseconds.
"""

from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.devices.all_or_none import AllOrNone, joined
from placement.allocators.devices.divided_cards import DividedCards
from placement.allocators.devices.nesting import nesting
from placement.allocators.devices.one_device import OneDevice
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.place_rules import PlaceRules, SearchLayout
from placement.allocators.devices.request import Device, Host, Request
from placement.allocators.devices.table_memo import RuledTables, TableMemo
from placement.allocators.devices.tables import Limits, Table, Tables

MEMO_WIDTH = 100
"""The most states of a table in the memo. Larger ones are computed for each host, whose other devices prune them."""

STEPS_TO_MEMOISE = 20_000
"""The most steps to take for a table that is to go into the memo."""

PLENTY_OUTSIDE = 1_000_000
"""As spare options of a group: enough outside that nothing is pruned, because a memo holds for any host."""


_TableOf = tuple[Sequence[Device], Table]
"""Some devices, and their table."""


class _Outside(NamedTuple):
    """What the table of some devices depends on besides the devices.

    Args:
        tables: merges them.
        spare: by group, the options of all devices beyond what the group wants; negative if there are too few.
        all_or_none: groups of which these devices serve all or none.
    """

    tables: Tables
    spare: Sequence[int]
    all_or_none: tuple[AllOrNone, ...] = ()


class Knapsack:
    """The search for one request on one host.

    Args:
        host: the host.
        request: the request.
        options: the options whose devices count as free when not taken.
        own: the options' own costs.
        most: the number of ways to find.
        limits: the limits of the search.
        counts_places: whether touching places costs anything.
        memo: the tables of this request on other hosts; it grows.
    """

    def __init__(
        self,
        host: Host,
        request: Request,
        options: Sequence[DeviceOption],
        *,
        own: OwnCosts,
        most: int,
        limits: Limits,
        counts_places: bool = True,
        memo: TableMemo | None = None,
    ) -> None:
        self._request = request
        self._most = most
        self._own = own
        self._counts_places = counts_places
        self._number = {option.device.name: own.numbering.device_of(option) for option in options}
        self._devices = list({option.device.name: option.device for option in options}.values())
        self._cards = DividedCards(self._devices if any([group.by_card for group in request.groups]) else ())
        partial = _partial_levels(host, options) if counts_places else ()
        cards = len(self._cards)
        layout = SearchLayout(host.levels, host.uncounted, own.numbering, partial, cards, counts_places, most)
        self._memo = memo.under(request, layout) if memo is not None else None
        self._rules = self._memo.rules if self._memo else PlaceRules(request, layout)
        self._one = OneDevice(request, self._rules, own, self._cards)
        self._counters, self._costs = self._rules.counters, self._rules.costs
        self._of_device: dict[str, list[DeviceOption]] = defaultdict(list)
        order = nesting({device.path for device in self._devices}, len(host.levels))
        self.has_nested_places = order is not None
        self._order = order or range(len(host.levels))
        # Recording the choice lowers a cost by less than this.
        most_cost = None if limits.cost is None else limits.cost + self._costs.of_choices
        self.tables = Tables(self._counters, most=most, limits=limits._replace(cost=most_cost))

    def run(self, options: Sequence[DeviceOption]) -> list[int]:
        """Return the costs of the best ways to serve the request with these options, in ascending order."""
        for option in options:
            self._of_device[option.device.name].append(option)
        supply = Counts([option.group for option in options])
        spare = [supply[index] - group.count for index, group in enumerate(self._request.groups)]
        table = self._table(self._devices, 0, _Outside(self.tables, spare))
        enough = [cost for state, costs in table.items() if self._counters.is_enough(state) for cost in costs]
        if self._counts_places:
            enough = [*map(self._costs.of_whole, enough)]
        return [] if self.tables.is_over else sorted(enough)[: self._most]

    def _table(self, devices: Sequence[Device], depth: int, outside: _Outside) -> Table:
        """Return the table of devices that are in the same places at the outermost ``depth`` levels."""
        parts = self._parts(devices, depth, outside)
        table: Table = {0: [0]}
        spare = [*outside.spare]
        for number, (some, other) in enumerate(parts, 1):
            self._take_from(spare, some)
            all_or_none = outside.all_or_none if number == len(parts) else ()
            table = outside.tables.merged(table, other, self._rules.pruner.pruning(spare, all_or_none))
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
            table_of, of, (tables, _spare, all_or_none) = self._one.table, self._of_device, outside
            parts = [([one], table_of(of[one.name], tables, all_or_none)) for one in devices]
        else:
            parts = [(some, self._table_of_place(place, some, depth, outside)) for place, some in places.items()]
        return self._in_cards(parts, outside.tables) if self._rules.by_card else parts

    def _take_from(self, spare: list[int], devices: Sequence[Device]) -> None:
        for device in devices:
            for option in self._of_device[device.name]:
                spare[option.group] -= 1

    def _table_of_place(self, place: str | None, devices: Sequence[Device], depth: int, outside: _Outside) -> Table:
        if place is None:
            return self._table(devices, depth + 1, outside)
        # States count the devices of a card elsewhere, too, so such a table holds for this host alone.
        if self._memo is not None and self._cards.are_whole(devices):
            table = self._memoised_table(self._memo, devices, depth, all_or_none=outside.all_or_none)
            if table is not None:
                spare = [*outside.spare]
                self._take_from(spare, devices)
                return outside.tables.pruned(table, self._rules.pruner.pruning(spare))
        return self._closed(devices, depth, outside)

    def _memoised_table(
        self, memo: RuledTables, devices: Sequence[Device], depth: int, *, all_or_none: tuple[AllOrNone, ...]
    ) -> Table | None:
        """Return the unpruned table of a place, the same for all places like it; None if it is too large."""
        options = sum([len(self._of_device[device.name]) for device in devices])
        if memo.is_too_large(options):
            return None
        form, first = self._form_of(devices, depth)
        known = memo.get((form, all_or_none))
        if known is not None:
            return self._moved(known, first)
        # On a budget of its own: if the table turns out too large, the request has lost nothing.
        tables = Tables(self._counters, most=self._most, limits=Limits(Budget(STEPS_TO_MEMOISE), MEMO_WIDTH))
        table = self._closed(
            devices, depth, _Outside(tables, [PLENTY_OUTSIDE] * len(self._request.groups), all_or_none)
        )
        if tables.is_cut or tables.is_over:
            memo.note_too_large(options)
            return None
        self.tables.budget.take(STEPS_TO_MEMOISE - tables.budget.left)
        memo.remember((form, all_or_none), self._moved(table, -first))
        return table

    def _form_of(self, devices: Sequence[Device], depth: int) -> tuple[Hashable, int]:
        """Return the canonical form of a place with some devices, and the number of its first device.

        Places of one form have the same table, but for the numbers of the devices in it.
        """
        first = min([self._number[device.name] for device in devices])
        inside = self._order[depth + 1 :]
        places: dict[str | None, int] = {None: -1}
        drawn = [
            (
                self._number[device.name] - first,
                *[places.setdefault(device.path[level], len(places)) for level in inside],
                places.setdefault(device.whole, len(places)),
                *self._form_of_device(device),
            )
            for device in devices
        ]
        return (tuple(self._order[depth:]), *drawn), first

    def _form_of_device(self, device: Device) -> tuple[Hashable, ...]:
        options, groups, own = self._of_device[device.name], self._request.groups, self._own
        serves = [(one.group, own.without_choice(one), groups[one.group].meets.get(device.name, 0)) for one in options]
        return (*device.room.items(), *serves)

    def _moved(self, table: Table, by: int) -> Table:
        """Return a table for devices with numbers higher by ``by``, all else equal."""
        moved, bits = self._costs.moved, by * self._own.numbering.turns
        return {state: [moved(cost, bits) for cost in costs] for state, costs in table.items()} if by else table

    def _closed(self, devices: Sequence[Device], depth: int, outside: _Outside) -> Table:
        """Return the table of a place, with its rules applied."""
        level, rules = self._order[depth], self._rules
        all_or_none = joined([*outside.all_or_none, *rules.all_or_none[level]])
        table = self._table(devices, depth + 1, outside._replace(all_or_none=all_or_none))
        outside.tables.budget.take(len(table) * (1 + rules.rules_at(level)))
        done = self._cards.inside(devices)
        return rules.closed(table, level, devices=len({device.whole for device in devices}), done=done)

    def _in_cards(self, parts: Sequence[_TableOf], tables: Tables) -> Sequence[_TableOf]:
        """Combine the parts that belong to one card, because some groups want different cards."""
        found: dict[object, _TableOf] = {}
        for number, (devices, table) in enumerate(parts):
            cards = {device.whole for device in devices}
            card = cards.pop() if len(cards) == 1 else number
            if card in found:
                others, known = found[card]
                found[card] = [*others, *devices], tables.beside(known, table, self._rules.by_card)
            else:
                found[card] = devices, table
        return list(found.values())


def _partial_levels(host: Host, options: Sequence[DeviceOption]) -> tuple[int, ...]:
    """Return the counted levels at which some devices are in a place and others in none.

    At these, the cheapest way in one part of a host need not belong to the cheapest way in all of it: touching no place
    is free, but so is touching the first one. So states tell whether any place is touched, and both kinds are kept.
    """
    counted = range(len(host.levels) - host.uncounted)
    return tuple([level for level in counted if len({option.device.path[level] is None for option in options}) > 1])

"""The device allocator's search: a knapsack over the tree of places, exact and polynomial.

Only counts matter. A place's table has the cheapest cost for each combination of device counts per group inside it.
Sibling tables are merged by adding; once a place is complete, its rules are applied. So the work grows with
devices x (counts)^2 rather than with the number of combinations: eight GPUs and eight NICs on sixteen switches take
milliseconds.
"""

from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Callable, Sequence

from placement.allocators.devices.counters import Counter, Counters
from placement.allocators.devices.nesting import nesting
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.request import Device, Group, Host, InOnePlace, Joint, Request
from placement.allocators.devices.tables import Limits, Table, Tables

STEPS_FOR_A_SET = 5
"""The cost of looking at a set of groups on one device, in pairs of states."""

Closing = Callable[[int], int | None]
"""Maps a state of a complete place to the cost that a rule adds; None if the rule forbids the state."""


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
    ) -> None:
        self._host = host
        self._request = request
        self._most = most
        self._index = {group.label: index for index, group in enumerate(request.groups)}
        self._bound = [within for within in request.within if within.required and within.stands_for == 1]
        self._divided = divided_cards(host.devices)
        self._counts_places = counts_places
        self._partial = _partial_levels(host, options) if counts_places else []
        self._counters = Counters(self._all_counters())
        self._by_card = [(index, one.stands_for) for index, one in enumerate(request.groups) if one.by_card]
        self._taking = self._counters.mask([index for index, one in enumerate(request.groups) if one.takes])
        self._apart = self._counters.mask([index for index, one in enumerate(request.groups) if one.apart])
        self._own, self._costs = own.of, own.packing
        self._devices = list({option.device.name: option.device for option in options}.values())
        self._of_device: dict[str, list[DeviceOption]] = defaultdict(list)
        self._spare: list[int] = []
        self._rules = [self._rules_of(level) for level in host.levels]
        self._bounds = [self._bounds_of(level) for level in host.levels]
        order = nesting({device.path for device in self._devices}, len(host.levels))
        self.has_nested_places = order is not None
        self._order = order or range(len(host.levels))
        # Recording the choice lowers a cost by less than this.
        most_cost = None if limits.cost is None else limits.cost + (1 << len(own.of))
        self.tables = Tables(self._counters, most=most, limits=limits._replace(cost=most_cost))

    def run(self, options: Sequence[DeviceOption]) -> list[int]:
        """Return the costs of the best ways to serve the request with these options, in ascending order."""
        for option in options:
            self._of_device[option.device.name].append(option)
        supply = Counts([option.group for option in options])
        self._spare = [supply[index] - group.count for index, group in enumerate(self._request.groups)]
        table = self._table(self._devices, 0)
        enough = [cost for state, costs in table.items() if self._counters.is_enough(state) for cost in costs]
        if self._counts_places:
            enough = [*map(self._costs.of_whole, enough)]
        return [] if self.tables.is_over else sorted(enough)[: self._most]

    def _all_counters(self) -> list[Counter]:
        groups = [_counter_of(group) for group in self._request.groups]
        withins = [Counter(1, 0) for _within in self._bound]
        conditions = [Counter(1, 1, saturates=True)] * self._request.conditions
        of_cards = [Counter(group.stands_for, 0) for group in self._request.groups] * len(self._divided)
        touched = [Counter(1, 0, saturates=True)] * len(self._partial)
        return groups + withins + conditions + of_cards + touched

    def _bounds_of(self, name: str) -> list[tuple[int, int, int]]:
        """Return a level's in-one-place rules: the mask of the groups, the floor at which all are present, a unit."""
        units, groups = self._counters.units[len(self._request.groups) :], self._request.groups
        return [
            (
                self._mask(within.groups),
                self._counters.floor([group.count if group.label in within.groups else 0 for group in groups]),
                unit,
            )
            for within, unit in zip(self._bound, units, strict=False)
            if within.level == name
        ]

    def _table(self, devices: Sequence[Device], depth: int) -> Table:
        """Return the table of devices that share their places at the outermost ``depth`` levels."""
        parts: list[tuple[Sequence[Device], Table]]
        if depth == len(self._order):
            parts = [([device], self._table_of(device)) for device in devices]
        else:
            places: dict[str | None, list[Device]] = defaultdict(list)
            for device in devices:
                places[device.path[self._order[depth]]].append(device)
            parts = [(some, self._table_of_place(place, some, depth)) for place, some in places.items()]
        table: Table = {0: [0]}
        spare = self._spare.copy()
        for some, other in self._in_cards(parts) if self._by_card else parts:
            for device in some:
                for option in self._of_device[device.name]:
                    spare[option.group] -= 1
            table = self._without_debts(self.tables.merged(table, other), spare)
        return table

    def _without_debts(self, table: Table, spare: Sequence[int]) -> Table:
        """Drop states that leave more to do than the devices outside can provide.

        Args:
            table: the table of some devices.
            spare: by group, the options outside beyond what the group wants; negative if there are too few.
        """
        if min(spare) >= 0:
            return table
        floor, reaches = self._counters.floor([-number for number in spare]), self._counters.reaches
        return {state: costs for state, costs in table.items() if reaches(state, floor)}

    def _table_of_place(self, place: str | None, devices: Sequence[Device], depth: int) -> Table:
        table = self._table(devices, depth + 1)
        if place is None:
            return table
        return self._closed(table, self._order[depth], len({device.whole for device in devices}))

    def _in_cards(self, parts: Sequence[tuple[Sequence[Device], Table]]) -> list[tuple[Sequence[Device], Table]]:
        """Combine the parts that belong to one card, of which some groups take only one."""
        found: dict[object, tuple[Sequence[Device], Table]] = {}
        for number, (devices, table) in enumerate(parts):
            cards = {device.whole for device in devices}
            card = cards.pop() if len(cards) == 1 else number
            if card in found:
                others, known = found[card]
                found[card] = [*others, *devices], self.tables.beside(known, table, self._by_card)
            else:
                found[card] = devices, table
        return list(found.values())

    def _table_of(self, device: Device) -> Table:
        """Return the ways to use one device: for no group, for one, or for several that it can serve at once."""
        table: Table = {0: [0]}
        options = self._of_device[device.name]
        room, asked, guard = self._packed_room(device, options)
        left = {0: room}
        settled = self._counters.settled
        for option, amounts in zip(options, asked, strict=True):
            units, cost = self._units(option), self._own[option.number]
            self.tables.budget.take(STEPS_FOR_A_SET * len(table))
            for state in [] if self.tables.is_over else self._before(option, table):
                still_left, both = left[state] - amounts, settled(state + units)
                if both is not None and still_left & guard == guard:
                    table[both], left[both] = [known + cost for known in table[state]], still_left
            table = self.tables.narrowed(table)
        return table

    def _packed_room(self, device: Device, options: Sequence[DeviceOption]) -> tuple[int, list[int], int]:
        """Return a device's room, what each option asks of it, and a bit for each class that is lost with too little.

        Each class has a field of one number, so that all are subtracted and compared at once.
        """
        room, guard, asked = 0, 0, [0] * len(options)
        wanted = [self._request.groups[option.group].amounts for option in options]
        shift = 0
        for name, left in device.room.items():
            amounts = [of.get(name, 0) for of in wanted]
            together = sum(amounts)  # More room makes no difference.
            asked = [packed | amount << shift for packed, amount in zip(asked, amounts, strict=True)]
            room |= int(max(0, min(left, together))) << shift
            shift += together.bit_length()
            guard |= 1 << shift
            shift += 1
        return room | guard, asked, guard

    def _before(self, option: DeviceOption, table: Table) -> list[int]:
        """Return the states that an option can be added to. Turns are interchangeable, so they are taken in order."""
        own, turns = self._counters.mask([option.group]), option.turn * self._counters.units[option.group]
        others = own | self._apart if self._request.groups[option.group].apart else own
        return [state for state in table if state & others == turns]

    def _units(self, option: DeviceOption) -> int:
        group = self._request.groups[option.group]
        meets = group.meets.get(option.device.name, 0)
        first = len(self._request.groups) + len(self._bound)
        conditions = [self._counters.units[first + bit] for bit in range(self._request.conditions) if meets >> bit & 1]
        return self._counters.units[option.group] | sum(conditions) | self._unit_of_card(option)

    def _unit_of_card(self, option: DeviceOption) -> int:
        """Return the mark that a group has used a card whose devices are in different places."""
        if not self._request.groups[option.group].by_card or option.device.whole not in self._divided:
            return 0
        groups = len(self._request.groups)
        first = groups + len(self._bound) + self._request.conditions
        return self._counters.units[first + self._divided.index(option.device.whole) * groups + option.group]

    def _closed(self, table: Table, level: int, devices: int) -> Table:
        """Apply the rules of a place that is complete and has ``devices`` that could have been taken."""
        self.tables.budget.take(len(table) * (1 + len(self._rules[level]) + len(self._bounds[level])))
        touched = self._costs.touched[level] + devices * self._costs.free[level] if self._counts_places else 0
        closed: Table = {0: table[0]} if 0 in table else {}
        for state, costs in table.items():
            after = self._after_rules(state, level) if state else None
            if after is not None:
                state_after, further = after
                if state & self._taking:
                    state_after, further = self._marked(state_after, level), further + touched
                known = closed.get(state_after, [])
                closed[state_after] = sorted([*known, *[cost + further for cost in costs]])[: self._most]
        return closed

    def _marked(self, state: int, level: int) -> int:
        """Mark a state as touching a place of a level at which other devices may be in none."""
        if level not in self._partial:
            return state
        unit = self._counters.units[self._partial.index(level) - len(self._partial)]  # These counters come last.
        return self._counters.settled(state + unit) or state

    def _after_rules(self, state: int, level: int) -> tuple[int, int] | None:
        """Return the state and the added cost after the rules of a level, or None if they forbid it."""
        further = 0
        for rule in self._rules[level]:
            added = rule(state)
            if added is None:
                return None
            further += added
        for mask, whole, unit in self._bounds[level]:
            if state & mask:
                # Devices missing here would have to be elsewhere.
                settled = self._counters.settled(state + unit) if self._counters.reaches(state, whole) else None
                if settled is None:
                    return None
                state = settled
        return state, further

    def _rules_of(self, name: str) -> list[Closing]:
        level = self._host.levels.index(name)
        joint = [self._joint_rule(one, level) for one in self._request.joint if one.level == name]
        wishes = [one for one in self._request.within if one.level == name and not one.required]
        ties = [one for one in self._request.within if one.level == name and one.stands_for > 1]
        return joint + [self._wish(one, level) for one in wishes] + [self._whole_ties(one) for one in ties]

    def _joint_rule(self, joint: Joint, level: int) -> Closing:
        primary = self._index[joint.primary]
        secondaries = [(self._index[label], self._stand_for(label)) for label in joint.secondaries]
        value = self._counters.value

        def required(state: int) -> int | None:
            if value(state, primary):
                return 0 if all([value(state, index) >= number for index, number in secondaries]) else None
            return None if any([value(state, index) for index, _number in secondaries]) else 0

        def preferred(state: int) -> int:
            primaries = value(state, primary)
            there = [(value(state, index), number) for index, number in secondaries]
            absent = sum([max(0, number - some) for some, number in there])
            alone = primaries * absent if primaries else sum([some for some, _number in there])
            return alone * self._costs.missed[level]

        return required if joint.required else preferred

    def _wish(self, within: InOnePlace, level: int) -> Closing:
        mask = self._mask(within.groups)
        return lambda state: self._costs.missed[level] if state & mask else 0

    def _whole_ties(self, ties: InOnePlace) -> Closing:
        indices = [self._index[label] for label in ties.groups]
        counts = [self._request.groups[index].count // ties.stands_for for index in indices]
        value = self._counters.value

        def closing(state: int) -> int | None:
            number = value(state, indices[0]) // counts[0]
            pairs = zip(indices, counts, strict=True)
            return 0 if all([value(state, index) == number * count for index, count in pairs]) else None

        return closing

    def _stand_for(self, label: str) -> int:
        return self._request.groups[self._index[label]].stands_for

    def _mask(self, labels: Sequence[str]) -> int:
        return self._counters.mask([self._index[label] for label in labels])


def _partial_levels(host: Host, options: Sequence[DeviceOption]) -> list[int]:
    """Return the counted levels at which some devices are in a place and others in none.

    There the cheapest part is not necessarily the best: touching no place is free, but so is touching the first one. So
    the best parts of both kinds are kept.
    """
    counted = range(len(host.levels) - host.uncounted)
    return [level for level in counted if len({option.device.path[level] is None for option in options}) > 1]


def divided_cards(devices: Sequence[Device]) -> list[str]:
    """Return the cards whose devices are in different places, so that no table of a place covers the whole card."""
    paths: dict[str, set[tuple[str | None, ...]]] = defaultdict(set)
    for device in devices:
        paths[device.whole].add(device.path)
    return sorted([card for card, found in paths.items() if len(found) > 1])


def _counter_of(group: Group) -> Counter:
    if group.per_subtree:
        # Counts at least to one, even if none is required, so that rules can see whether one is present.
        return Counter(max(group.count, group.stands_for), group.count, saturates=True)
    return Counter(group.count, group.count)

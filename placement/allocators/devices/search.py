"""The device allocator's search: a knapsack over the tree of places, exact and polynomial.

Only counts matter. The table of a place has a state for each combination of counts, such as "two GPUs and one NIC", and
the cheapest way to take that many of the devices inside. Two places side by side are merged by adding each state of
one to each state of the other; states that the devices outside cannot complete are dropped (``pruning``). Once a place
is complete, the rules about it are applied. So the work grows with devices x (counts)^2 rather than with the number of
combinations: eight GPUs and eight NICs on sixteen switches take milliseconds.
"""

from collections import Counter, defaultdict
from collections import Counter as Counts
from collections.abc import Hashable, Sequence
from math import inf

from placement.allocators.budget import Budget
from placement.allocators.devices.costs import Costs, own_costs
from placement.allocators.devices.identical import shared_out, without_identical_ties, without_twins
from placement.allocators.devices.place_rules import PlaceRules
from placement.allocators.devices.request import (
    THE_DEVICE,
    Device,
    DeviceOption,
    DividedCards,
    Host,
    Request,
    nesting,
    options_of,
)
from placement.allocators.devices.tables import Table, Tables


def host_key(host: Host, request: Request) -> Hashable:
    """Return all that an allocation depends on, besides what is the same for all hosts of a request."""
    return (
        tuple([(device.name, device.path, tuple(device.room.items()), device.card) for device in host.devices]),
        host.in_use,
        tuple(
            [(group.count, *sorted(group.meets.items()), *sorted(group.options.items())) for group in request.groups]
        ),
    )


class DevicePlan:
    """A request on a host, ready to be searched.

    Raises:
        ValueError: the request refers to an unknown group or level, repeats a label, or has a group without devices.
    """

    def __init__(self, host: Host, request: Request) -> None:
        _check(host, request)
        self._labels = [group.label for group in request.groups]
        self.host, counted, self._ties = without_identical_ties(host, request)
        self.request, self._twins = without_twins(self.host, counted)
        """The request without twins."""
        self.options = options_of(self.host, self.request)
        self.costs = Costs(len(self.host.levels), len(self.options), uncounted=self.host.uncounted)
        """The layout of costs."""

    @property
    def is_hopeless(self) -> bool:
        """Whether there are too few devices for a group, or too little of a class for all groups."""
        supply = Counter([option.group for option in self.options])
        if any([supply[index] < group.count for index, group in enumerate(self.request.groups)]):
            return True
        needed: Counter[str] = Counter()
        for group in self.request.groups:
            needed.update({name: group.count * amount for name, amount in group.amounts.items()})
        rooms = {option.device.name: option.device.room for option in self.options}.values()
        return any([amount > sum([room.get(name, inf) for room in rooms]) for name, amount in needed.items()])

    def devices(self, cost: int) -> dict[str, tuple[str, ...]]:
        """Return the devices that each group gets, by label, from the cost that records them."""
        chosen = [self.options[number] for number in self.costs.chosen(cost)]
        devices: dict[str, tuple[str, ...]] = {}
        for index, family in enumerate(self._twins.values()):
            devices |= shared_out(self.host, [option for option in chosen if option.group == index], family)
        for identical in self._ties:
            devices |= identical.shared_out(devices, self.host)
        return {label: devices[label] for label in self._labels}


def _check(host: Host, request: Request) -> None:
    labels = [group.label for group in request.groups]
    named = {label for rule in request.rules for label in rule.groups}
    levels = {rule.level for rule in request.rules}
    exclusive = {level for group in request.groups for level in group.exclusive} - {THE_DEVICE}
    if unknown := sorted(named - set(labels)):
        raise ValueError(f"There is no group {unknown[0]!r}.")
    if unknown := sorted((levels | exclusive) - {*host.levels}):
        raise ValueError(f"There is no level {unknown[0]!r}.")
    if len(set(labels)) < len(labels):
        raise ValueError("Two groups have one label.")
    if any([group.count < (0 if group.per_subtree else 1) for group in request.groups]):
        raise ValueError("A group wants no device at all.")


STEPS_FOR_AN_OPTION = 5
"""The cost of adding an option of one device to a state, in pairs of states."""


_TableOf = tuple[Sequence[Device], Table]
"""Some devices, and their table."""


class Knapsack:
    """The search for one request on one host."""

    def __init__(self, plan: DevicePlan, *, max_ways: int, budget: Budget) -> None:
        host, options, self._request = plan.host, plan.options, plan.request
        self._max_ways = max_ways
        self._costs = plan.costs
        self._devices = list({option.device.name: option.device for option in options}.values())
        by_card = any([group.by_card for group in self._request.groups])
        self._cards = DividedCards(self._devices if by_card else ())
        self._rules = PlaceRules(
            self._request,
            host.levels,
            plan.costs,
            partial=_partial_levels(host, options),
            cards=len(self._cards),
            max_ways=max_ways,
        )
        self._own_costs = own_costs(host, plan.request, options, plan.costs)
        self._options: dict[str, list[DeviceOption]] = defaultdict(list)
        for option in options:
            self._options[option.device.name].append(option)
        supply = Counts([option.group for option in options])
        self._spare = [supply[index] - group.count for index, group in enumerate(self._request.groups)]
        order = nesting({device.path for device in self._devices}, len(host.levels))
        self._has_nested_places = order is not None
        self._order = order or range(len(host.levels))
        self._tables = Tables(self._rules.counters, max_ways=max_ways, budget=budget)

    @property
    def is_complete(self) -> bool:
        """Whether the budget sufficed, and the host is one for which the search is exact: places do not overlap."""
        return not self._tables.is_over and self._has_nested_places

    def run(self) -> list[int]:
        """Return the costs of the best ways to serve the request, in ascending order."""
        table = self._table(self._devices, 0, self._spare)
        is_enough, of_whole = self._rules.counters.is_enough, self._costs.of_whole
        enough = [of_whole(cost) for state, costs in table.items() if is_enough(state) for cost in costs]
        return [] if self._tables.is_over else sorted(enough)[: self._max_ways]

    def _table(self, devices: Sequence[Device], depth: int, spare: Sequence[int]) -> Table:
        """Return the table of devices that are in the same places at the outermost ``depth`` levels.

        ``spare`` has by group the options of all devices outside beyond what the group wants; negative if too few.
        """
        table: Table = {0: [0]}
        spare_left = [*spare]
        for part, table_of_part in self._parts(devices, depth, spare):
            for device in part:
                for option in self._options[device.name]:
                    spare_left[option.group] -= 1
            table = self._tables.merged(table, table_of_part, self._rules.pruner.pruning(spare_left))
        return table

    def _parts(self, devices: Sequence[Device], depth: int, spare: Sequence[int]) -> Sequence[_TableOf]:
        """Divide such devices by their places at the next level, or one by one; return each set with its table."""
        level = self._order[depth] if depth < len(self._order) else None
        places: dict[str | None, list[Device]] = defaultdict(list)
        for device in devices:
            places[device.name if level is None else device.path[level]].append(device)
        if level is None:
            parts = [([device], self._table_of_one(self._options[device.name])) for device in devices]
        else:
            parts = [(inside, self._closed(place, inside, depth, spare)) for place, inside in places.items()]
        return self._in_cards(parts) if self._rules.by_card else parts

    def _closed(self, place: str | None, devices: Sequence[Device], depth: int, spare: Sequence[int]) -> Table:
        """Return the table of a place, with its rules applied; or of the devices that are in none."""
        if place is None:
            return self._table(devices, depth + 1, spare)
        level, rules = self._order[depth], self._rules
        table = self._table(devices, depth + 1, spare)
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
                of_card, before = combined[card]
                combined[card] = (
                    [*of_card, *devices],
                    self._tables.on_one_card(before, table, self._rules.by_card),
                )
            else:
                combined[card] = devices, table
        return list(combined.values())

    def _table_of_one(self, options: Sequence[DeviceOption]) -> Table:
        """Return the table of a device, given its options in order."""
        table: Table = {0: [0]}
        room, amounts_of_options, guard = self._packed_room(options)
        room_left, settled, groups = {0: room}, self._rules.counters.settled, self._request.groups
        for option, amounts in zip(options, amounts_of_options, strict=True):
            self._tables.budget.take(STEPS_FOR_AN_OPTION * len(table))
            meets = groups[option.group].meets.get(option.device.name, 0)
            units = self._rules.units(option.group, meets, self._cards.number(option.device.whole))
            cost, before = self._own_costs[option.number], self._rules.before(option.group, option.turn, table)
            for state in [] if self._tables.is_over else before:
                still_left, state_after = room_left[state] - amounts, settled(state + units)
                if state_after is not None and still_left & guard == guard:
                    table[state_after], room_left[state_after] = (
                        [cost_before + cost for cost_before in table[state]],
                        still_left,
                    )
        return table

    def _packed_room(self, options: Sequence[DeviceOption]) -> tuple[int, list[int], int]:
        """Return a device's room, what each option asks of it, and the guard bits, each as one number.

        Each class has a field in these numbers, topped by a guard bit. So one subtraction takes from all classes, and
        clears the guard bit of each that has too little.
        """
        room, guard, packed_amounts = 0, 0, [0] * len(options)
        amounts_of_groups = [self._request.groups[option.group].amounts for option in options]
        shift = 0
        for name, units in options[0].device.room.items() if options else ():
            amounts = [of_group.get(name, 0) for of_group in amounts_of_groups]
            together = sum(amounts)  # More room makes no difference.
            packed_amounts = [packed | amount << shift for packed, amount in zip(packed_amounts, amounts, strict=True)]
            room |= int(max(0, min(units, together))) << shift
            shift += together.bit_length()
            guard |= 1 << shift
            shift += 1
        return room | guard, packed_amounts, guard


def _partial_levels(host: Host, options: Sequence[DeviceOption]) -> tuple[int, ...]:
    """Return the counted levels at which some devices are in a place and others in none.

    At these, the cheapest way in one part of a host need not belong to the cheapest way in all of it: touching no place
    is free, but so is touching the first one. So states tell whether any place is touched, and both kinds are kept.
    """
    counted = range(len(host.levels) - host.uncounted)
    return tuple([level for level in counted if len({option.device.path[level] is None for option in options}) > 1])

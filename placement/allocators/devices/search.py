"""The device allocator's search: a knapsack over the tree of places, exact and polynomial.

Only counts matter. The table of a place has a state for each combination of counts, such as "two GPUs and one NIC", and
the cheapest way to take that many of the devices inside. Places side by side are merged by adding each state of one to
each state of the other; states that the devices outside cannot complete are dropped. Once a place is complete, its
rules are applied. So the work grows with devices x (counts)^2: eight GPUs and eight NICs on sixteen switches take
milliseconds.
"""

from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

from placement.allocators import Budget
from placement.allocators.devices.request import Device, DeviceOption, Group, Host, InOnePlace, Joint, Request, nesting
from placement.allocators.devices.tables import NO_PRUNING, Costs, Counter, Counters, Pruning, Table, Tables

Closing = Callable[[int], int | None]
"""Maps a state of a complete place to the cost that a rule adds; None if the rule forbids the state."""


class PlaceRules:
    """What the rules of one request say about the devices taken in one place, whichever host it is on.

    Args:
        partial: the levels at which it is counted whether any place is touched.
    """

    def __init__(
        self, request: Request, levels: Sequence[str], costs: Costs, *, partial: Sequence[int], max_ways: int
    ) -> None:
        self._request = request
        self._costs = costs
        self._partial = partial
        self._max_ways = max_ways
        self._index = {group.label: index for index, group in enumerate(request.groups)}
        self._bound = [within for within in request.within if within.required and within.stands_for == 1]
        """The rules that bind groups to one place. Those that stand for several may be served in several places."""
        self.by_card = [(index, group.stands_for) for index, group in enumerate(request.groups) if group.by_card]
        """The groups that want different cards, each with how many devices of one card it may have."""
        self.counters = Counters(self._all_counters())
        self._own_masks = [self.counters.mask([index]) for index in range(len(request.groups))]
        self._taking = self.counters.mask([index for index, group in enumerate(request.groups) if group.takes])
        self._isolated = self.counters.mask([index for index, group in enumerate(request.groups) if group.is_isolated])
        self._closings = [self._closings_of(level, name) for level, name in enumerate(levels)]
        self._bounds = [self._bounds_of(name) for name in levels]
        # A place of which nothing is taken is none.
        self._after_rules: list[dict[int, tuple[int, int] | None]] = [{0: None} for _level in levels]
        """By level, states of complete places -> the state after its rules and the cost that they add: they recur."""

    def rules_at(self, level: int) -> int:
        """Return how many rules there are about a level."""
        return len(self._closings[level]) + len(self._bounds[level])

    def pruning(self, spare: Sequence[int]) -> Pruning:
        """Return what a table can do without; ``spare`` has by group the options outside minus what is wanted."""
        if min(spare) >= 0:
            return NO_PRUNING
        floor, settled, final = self.counters.guard, 0, 0
        for index, more in enumerate(spare):
            if more < 0:
                group, unit = self._request.groups[index], self.counters.units[index]
                floor += more * unit
                if more == -group.count and not group.per_subtree:  # There is nothing outside.
                    settled, final = settled | self._own_masks[index], final - more * unit
        return Pruning(floor, settled, final)

    def units(self, group: int, meets: int) -> int:
        """Return what a device adds to a state by serving a group, and by the conditions, as bits, that it meets."""
        units = self.counters.units
        first = len(self._request.groups) + len(self._bound)
        return units[group] | sum([units[first + bit] for bit in range(self._request.conditions) if meets >> bit & 1])

    def before(self, group: int, turn: int, table: Table) -> list[int]:
        """Return the states of a device that a group can be added to; turns come in order."""
        own, turns = self._own_masks[group], turn * self.counters.units[group]
        closed_to = own | self._isolated if self._request.groups[group].is_isolated else own
        return [state for state in table if state & closed_to == turns]

    def closed(self, table: Table, level: int, *, devices: int) -> Table:
        """Return the table of a complete place with so many usable ``devices``: with its rules and cost applied."""
        max_ways, taking, after_rules = self._max_ways, self._taking, self._after_rules[level]
        touched = self._costs.touched[level] + devices * self._costs.free[level]
        closed: Table = {0: table[0]} if 0 in table else {}
        for state, of_state in table.items():
            if state not in after_rules:
                after_rules[state] = self._closed_state(level, state)
            after = after_rules[state]
            if after is not None:
                state_after, further = after[0], after[1] + touched if state & taking else after[1]
                costs_after, so_far = [cost + further for cost in of_state], closed.get(state_after)
                closed[state_after] = costs_after if so_far is None else sorted([*so_far, *costs_after])[:max_ways]
        return closed

    def _all_counters(self) -> list[Counter]:
        """Return the counters of a state, in this order.

        The devices of each group; whether any place serves the groups bound to one; whether any device meets each
        condition; and whether any place is touched, for each level where that is counted.
        """
        groups = [
            # Counts beyond what a place may have, so that the joint rule can see that.
            Counter(_limit_in_a_place(group) + 1, group.count, saturates=True)
            if group.per_subtree
            else Counter(group.count, group.count)
            for group in self._request.groups
        ]
        withins = [Counter(1, 0) for _within in self._bound]
        conditions = [Counter(1, 1, saturates=True)] * self._request.conditions
        touched = [Counter(1, 0, saturates=True)] * len(self._partial)
        return groups + withins + conditions + touched

    def _bounds_of(self, name: str) -> list[tuple[int, int, int]]:
        """Return the in-one-place rules about a level.

        For each: the bits of its groups, the floor at which all are served, and what a place that serves them, the only
        one, adds.
        """
        units, groups = self.counters.units[len(self._request.groups) :], self._request.groups
        return [
            (
                self._mask(within.groups),
                self.counters.floor([group.count if group.label in within.groups else 0 for group in groups]),
                unit,
            )
            for within, unit in zip(self._bound, units, strict=False)
            if within.level == name
        ]

    def _closed_state(self, level: int, state: int) -> tuple[int, int] | None:
        """Apply the rules of a level to the state of a complete place; return None if they forbid it."""
        cost = 0
        for rule in self._closings[level]:
            added = rule(state)
            if added is None:
                return None
            cost += added
        for mask, complete, unit in self._bounds[level]:
            if state & mask:
                # Devices missing here would have to be elsewhere.
                is_complete = (state + complete) & self.counters.guard == self.counters.guard
                settled = self.counters.settled(state + unit) if is_complete else None
                if settled is None:
                    return None
                state = settled
        if state & self._taking and level in self._partial:
            # Other devices may be in no place of the level. These counters come last.
            unit = self.counters.units[self._partial.index(level) - len(self._partial)]
            state = self.counters.settled(state + unit) or state
        return state, cost

    def _closings_of(self, level: int, name: str) -> list[Closing]:
        """Return the rules about a level that look at each place by itself."""
        joint = [self._joint_rule(rule, level) for rule in self._request.joint if rule.level == name]
        wishes = [rule for rule in self._request.within if rule.level == name and not rule.required]
        ties = [rule for rule in self._request.within if rule.level == name and rule.stands_for > 1]
        return joint + [self._wish(rule, level) for rule in wishes] + [self._whole_ties(rule) for rule in ties]

    def _joint_rule(self, joint: Joint, level: int) -> Closing:
        """Wherever primaries are, each secondary is as well: as many as the groups that it stands for.

        One that is counted by places has no more there than it needs.
        """
        primary = self._index[joint.primary]
        by_place = [group for group in self._request.groups if group.per_subtree and group.label in joint.secondaries]
        limits = [(self._index[group.label], _limit_in_a_place(group)) for group in by_place]
        stand_for = {group.label: group.stands_for for group in self._request.groups}
        secondaries = [(self._index[label], stand_for[label]) for label in joint.secondaries]
        value, missed = self.counters.value, self._costs.missed[level]

        def required(state: int) -> int | None:
            if value(state, primary):
                return 0 if all([value(state, index) >= number for index, number in secondaries]) else None
            return None if any([value(state, index) for index, _number in secondaries]) else 0

        def preferred(state: int) -> int | None:
            primaries = value(state, primary)
            numbers = [(value(state, index), number) for index, number in secondaries]
            absent = sum([max(0, number - present) for present, number in numbers])
            alone = primaries * absent if primaries else sum([present for present, _number in numbers])
            return alone * missed

        rule = required if joint.required else preferred
        return lambda state: None if any([value(state, index) > limit for index, limit in limits]) else rule(state)

    def _wish(self, within: InOnePlace, level: int) -> Closing:
        """Groups are in as few places as possible: each place with a device of theirs costs."""
        mask, missed = self._mask(within.groups), self._costs.missed[level]
        return lambda state: missed if state & mask else 0

    def _whole_ties(self, ties: InOnePlace) -> Closing:
        """A place serves a whole number of identical ties: of each group as many times its devices for one tie."""
        indices = [self._index[label] for label in ties.groups]
        counts = [self._request.groups[index].count // ties.stands_for for index in indices]
        value = self.counters.value

        def closing(state: int) -> int | None:
            number = value(state, indices[0]) // counts[0]
            pairs = zip(indices, counts, strict=True)
            return 0 if all([value(state, index) == number * count for index, count in pairs]) else None

        return closing

    def _mask(self, labels: Sequence[str]) -> int:
        return self.counters.mask([self._index[label] for label in labels])


STEPS_FOR_AN_OPTION = 5
"""The cost of adding an option of one device to a state, in pairs of states."""


class Knapsack:
    """The search for one request, without twins, among the options on one host."""

    def __init__(
        self,
        host: Host,
        request: Request,
        options: Sequence[DeviceOption],
        *,
        costs: Costs,
        max_ways: int,
        budget: Budget,
    ) -> None:
        self._request = request
        self._costs = costs
        self._max_ways = max_ways
        self._options: dict[str, list[DeviceOption]] = defaultdict(list)
        for option in options:
            self._options[option.device.name].append(option)
        self._devices = [of_device[0].device for of_device in self._options.values()]
        # Where some devices are in no place, touching none is free, but so is touching the first: states tell which.
        counted = range(len(host.levels) - host.uncounted)
        partial = [level for level in counted if len({device.path[level] is None for device in self._devices}) > 1]
        self._rules = PlaceRules(request, host.levels, costs, partial=partial, max_ways=max_ways)
        self._own_costs = _own_costs(host, request, options, costs)
        supply = Counts([option.group for option in options])
        self._spare = [supply[index] - group.count for index, group in enumerate(request.groups)]
        nested = nesting({device.path for device in self._devices}, len(host.levels))
        order = range(len(host.levels)) if nested is None else nested
        self._order = [level for level in order if level in counted or self._rules.rules_at(level)]
        paths = {(device.whole, device.path) for device in host.devices}
        is_divided = self._rules.by_card and len(paths) > len({card for card, _path in paths})
        self._is_exact = nested is not None and not is_divided
        self._tables = Tables(self._rules.counters, max_ways=max_ways, budget=budget)

    @property
    def is_complete(self) -> bool:
        """Whether the budget sufficed and the search is exact: no places overlap, and no card that counts is in two."""
        return not self._tables.budget.was_hit and self._is_exact

    def run(self) -> list[int]:
        """Return the costs of the best ways to serve the request, in ascending order."""
        table = self._table(self._devices, 0, self._spare)
        is_enough, of_whole = self._rules.counters.is_enough, self._costs.of_whole
        enough = [of_whole(cost) for state, costs in table.items() if is_enough(state) for cost in costs]
        return [] if self._tables.budget.was_hit else sorted(enough)[: self._max_ways]

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
            table = self._tables.merged(table, table_of_part, self._rules.pruning(spare_left))
        return table

    def _parts(
        self, devices: Sequence[Device], depth: int, spare: Sequence[int]
    ) -> Iterator[tuple[Sequence[Device], Table]]:
        """Divide such devices by their places at the next level, or card by card; yield each set with its table."""
        level = self._order[depth] if depth < len(self._order) else None
        by_card, parts = bool(self._rules.by_card), defaultdict[str | None, list[Device]](list)
        for device in devices:
            parts[device.path[level] if level is not None else device.whole if by_card else device.name].append(device)
        for name, inside in parts.items():
            if level is None:
                # Of a card, some groups may want only one part each.
                tables = [self._table_of_one(self._options[device.name]) for device in inside]
                yield inside, reduce(partial(self._tables.on_one_card, caps=self._rules.by_card), tables)
            elif name is None:
                yield inside, self._table(inside, depth + 1, spare)
            else:
                table = self._table(inside, depth + 1, spare)
                self._tables.budget.take(len(table) * (1 + self._rules.rules_at(level)))
                number = len({device.whole for device in inside})
                yield inside, self._rules.closed(table, level, devices=number)

    def _table_of_one(self, options: Sequence[DeviceOption]) -> Table:
        """Return the table of a device, given its options in order."""
        table: Table = {0: [0]}
        room, amounts_of_options, guard = self._packed_room(options)
        room_left, settled, groups = {0: room}, self._rules.counters.settled, self._request.groups
        for option, amounts in zip(options, amounts_of_options, strict=True):
            self._tables.budget.take(STEPS_FOR_AN_OPTION * len(table))
            units = self._rules.units(option.group, groups[option.group].meets.get(option.device.name, 0))
            cost, before = self._own_costs[option.number], self._rules.before(option.group, option.turn, table)
            for state in [] if self._tables.budget.was_hit else before:
                still_left, state_after = room_left[state] - amounts, settled(state + units)
                if state_after is not None and still_left & guard == guard:
                    room_left[state_after] = still_left
                    table[state_after] = [cost_before + cost for cost_before in table[state]]
        return table

    def _packed_room(self, options: Sequence[DeviceOption]) -> tuple[int, list[int], int]:
        """Return a device's room, what each option asks of it, and the guard bits, each as one number.

        Each class has a field, topped by a guard bit that is cleared when an option takes more than there is.
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


def _limit_in_a_place(group: Group) -> int:
    """Return how many devices a group that is counted by places takes at most in one: one, or all that it wants."""
    return max(group.count, group.stands_for)


def _own_costs(host: Host, request: Request, options: Sequence[DeviceOption], costs: Costs) -> list[int]:
    """Return the part of each option's cost that does not depend on what else is taken."""
    stand_for = {group.label: group.stands_for for group in request.groups}
    missed = defaultdict[str, list[tuple[int, int]]](list)
    """Label -> the levels of the rules about a group, each with the cost of being in no place of it."""
    for rule in request.rules:
        level = host.levels.index(rule.level)
        for label in rule.groups:
            # A primary lacks each secondary, and vice versa.
            is_primary = isinstance(rule, Joint) and label == rule.primary
            lacking = sum([stand_for[other] for other in rule.groups if other != label]) if is_primary else 1
            missed[label].append((level, lacking * costs.missed[level]))
    return [
        costs.device
        + request.groups[group].options[device.name] * costs.misfit
        + costs.choice(number)
        + sum([cost for level, cost in missed[request.groups[group].label] if device.path[level] is None])
        for number, group, device, _turn in options
    ]

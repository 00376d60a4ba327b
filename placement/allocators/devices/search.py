"""The search of the device allocator: a knapsack over the tree of places, exact and polynomial.

Only counts matter: for every place the table says, for each count of devices per group inside it, what the cheapest way
costs. Two tables side by side are merged by adding; where a place is complete its rules are applied. So the work grows
with devices x (counts)^2 instead of with the number of combinations: eight GPUs and eight NICs on sixteen switches take
milliseconds.
"""

from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from placement.allocators.devices.costs import Costs
from placement.allocators.devices.counters import Counter, Counters
from placement.allocators.devices.options import Option
from placement.allocators.devices.request import Device, Group, Host, Joint, Request, Within

Table = dict[int, list[int]]
"""For each state (packed counters) the costs of the best ways to get there, ascending."""

STEPS = 1_000_000
"""How many pairs of states, and sets of groups on one device, may be looked at for one host."""

Closing = Callable[[int], int | None]
"""What a rule adds to the cost of a state of a complete place; None if it forbids the state."""


class Search:
    """All that is known about serving one request on one host."""

    def __init__(
        self, host: Host, request: Request, options: Sequence[Option], *, most: int, steps: int = STEPS
    ) -> None:
        self._host = host
        self._request = request
        self._most = most
        self._index = {group.label: index for index, group in enumerate(request.groups)}
        self._bound = [within for within in request.within if within.required]
        self._counters = Counters(self._all_counters())
        self._by_card = [self._counters.mask([index]) for index, one in enumerate(request.groups) if one.by_card]
        self.costs = Costs(len(host.levels), len(options))
        self._of_device: dict[str, list[Option]] = defaultdict(list)
        for option in options:
            self._of_device[option.device.name].append(option)
        self._supply = Counts([option.group for option in options])
        self._rules = [self._rules_of(level) for level in host.levels]
        self.steps_left = steps

    def run(self) -> list[int]:
        """Return the costs of the best ways to serve the request, the best first; empty if there is none."""
        devices = {options[0].device.name: options[0].device for options in self._of_device.values()}
        table = self._table(list(devices.values()), 0)
        enough = [cost for state, costs in table.items() if self._counters.is_enough(state) for cost in costs]
        return sorted(enough)[: self._most]

    def _all_counters(self) -> list[Counter]:
        groups = [_counter_of(group) for group in self._request.groups]
        withins = [Counter(1, 0) for _within in self._bound]
        return groups + withins + [Counter(1, 1, saturates=True)] * self._request.conditions

    def _table(self, devices: Sequence[Device], level: int) -> Table:
        """Return the table of devices that are in the same places above a level."""
        parts: list[tuple[Sequence[Device], Table]]
        if level == len(self._host.levels):
            parts = [([device], self._table_of(device)) for device in devices]
        else:
            places: dict[str | None, list[Device]] = defaultdict(list)
            for device in devices:
                places[device.path[level]].append(device)
            parts = [(some, self._table_of_place(place, some, level)) for place, some in places.items()]
        table: Table = {0: [0]}
        inside: list[Device] = []
        for some, other in self._in_cards(parts) if self._by_card else parts:
            inside += some
            table = self._without_debts(self._merged(table, other), inside)
        return table

    def _without_debts(self, table: Table, inside: Sequence[Device]) -> Table:
        """Return the table of some devices without what leaves more for the others than these can do."""
        here = Counts([option.group for device in inside for option in self._of_device[device.name]])
        groups = enumerate(self._request.groups)
        debts = [group.count - (self._supply[index] - here[index]) for index, group in groups]
        if max(debts) <= 0:
            return table
        floor, reaches = self._counters.floor(debts), self._counters.reaches
        return {state: costs for state, costs in table.items() if reaches(state, floor)}

    def _table_of_place(self, place: str | None, devices: Sequence[Device], level: int) -> Table:
        table = self._table(devices, level + 1)
        return table if place is None else self._closed(table, level, len({device.whole for device in devices}))

    def _in_cards(self, parts: Sequence[tuple[Sequence[Device], Table]]) -> list[tuple[Sequence[Device], Table]]:
        """Return the parts with those as one that are of one card: some groups take it only once."""
        found: dict[object, tuple[Sequence[Device], Table]] = {}
        for number, (devices, table) in enumerate(parts):
            cards = {device.whole for device in devices}
            card = cards.pop() if len(cards) == 1 else number
            others, known = found.get(card, ((), {0: [0]}))
            found[card] = [*others, *devices], self._beside(known, table)
        return list(found.values())

    def _beside(self, left: Table, right: Table) -> Table:
        """Return the table of two parts of a card."""
        table: Table = defaultdict(list)
        self.steps_left -= len(left) * len(right)
        for state, other in product(left, right) if self.steps_left >= 0 else ():
            both = self._counters.settled(state + other)
            if both is not None and not any([state & mask and other & mask for mask in self._by_card]):
                table[both] += [cost + more for cost in left[state] for more in right[other]]
        return {state: sorted(costs)[: self._most] for state, costs in table.items()}

    def _table_of(self, device: Device) -> Table:
        """Return the ways to use one device: for no group, for one, or for several that it can serve at once."""
        table: Table = {0: [0]}
        for chosen in self._together(device, self._of_device[device.name]):
            state = sum([self._units(option) for option in chosen])
            table.setdefault(state, []).append(sum([self._cost(option) for option in chosen]))
        return {self._settled(state): sorted(costs)[: self._most] for state, costs in table.items()}

    def _settled(self, state: int) -> int:
        settled = self._counters.settled(state)
        assert settled is not None, "a group takes a device no more often than it wants one"
        return settled

    def _together(self, device: Device, options: Sequence[Option]) -> Iterator[tuple[Option, ...]]:
        """Yield every set of options that one device can serve together, but the empty one."""
        groups = self._request.groups
        ways: list[tuple[Option, ...]] = [()]
        for option in options:
            self.steps_left -= len(ways)
            if self.steps_left < 0:
                return
            for way in list(ways):
                if option.turn and (not way or way[-1][1:] != (option.group, option.device, option.turn - 1)):
                    continue  # Turns are all alike.
                members = [groups[one.group] for one in (*way, option)]
                if _fit_together(device, members):
                    ways.append((*way, option))
                    yield (*way, option)

    def _units(self, option: Option) -> int:
        group = self._request.groups[option.group]
        meets = group.meets.get(option.device.name, 0)
        first = len(self._request.groups) + len(self._bound)
        conditions = [self._counters.units[first + bit] for bit in range(self._request.conditions) if meets >> bit & 1]
        return self._counters.units[option.group] | sum(conditions)

    def _cost(self, option: Option) -> int:
        group = self._request.groups[option.group]
        costs = self.costs
        fit = costs.device + group.options[option.device.name] * costs.misfit + costs.choice(option.number)
        return fit + self._cost_of_no_place(group.label, option.device)

    def _cost_of_no_place(self, label: str, device: Device) -> int:
        """Return what it costs to be in no place of a level that a wish is about."""
        missed = 0
        for level, place in enumerate(device.path):
            if place is None:
                name = self._host.levels[level]
                joint = sum([_absent_around(one, label) for one in self._request.joint if one.level == name])
                within = [one for one in self._request.within if one.level == name and label in one.groups]
                missed += (joint + len(within)) * self.costs.missed[level]
        return missed

    def _merged(self, left: Table, right: Table) -> Table:
        """Return the table of two disjoint sets of devices."""
        self.steps_left -= len(left) * len(right)
        if self.steps_left < 0:
            return {0: [0]}
        return _merged_best(left, right, self._counters) if self._most == 1 else self._merged_several(left, right)

    def _merged_several(self, left: Table, right: Table) -> Table:
        table: Table = defaultdict(list)
        for state, costs in left.items():
            for other, others in right.items():
                both = self._counters.settled(state + other)
                if both is not None:
                    table[both] += [cost + more for cost in costs for more in others]
        return {state: sorted(costs)[: self._most] for state, costs in table.items()}

    def _closed(self, table: Table, level: int, devices: int) -> Table:
        """Return the table of a complete place, with its rules applied. ``devices`` could have been taken there."""
        touched = self.costs.touched[level] + devices * self.costs.free[level]
        closed: Table = {0: table[0]} if 0 in table else {}
        for state, costs in table.items():
            after = self._after_rules(state, level) if state else None
            if after is not None:
                known = closed.get(after[0], [])
                closed[after[0]] = sorted([*known, *[cost + touched + after[1] for cost in costs]])[: self._most]
        return closed

    def _after_rules(self, state: int, level: int) -> tuple[int, int] | None:
        """Return the state and the further cost after the rules of a level, or None if they forbid it."""
        further = 0
        for rule in self._rules[level]:
            added = rule(state)
            if added is None:
                return None
            further += added
        for index, within in enumerate(self._bound):
            if within.level == self._host.levels[level] and state & self._mask(within.groups):
                settled = self._counters.settled(state + self._counters.units[len(self._request.groups) + index])
                if settled is None:
                    return None
                state = settled
        return state, further

    def _rules_of(self, name: str) -> list[Closing]:
        level = self._host.levels.index(name)
        joint = [self._joint_rule(one, level) for one in self._request.joint if one.level == name]
        wishes = [one for one in self._request.within if one.level == name and not one.required]
        return joint + [self._wish(one, level) for one in wishes]

    def _joint_rule(self, joint: Joint, level: int) -> Closing:
        primary = self._index[joint.primary]
        secondaries = [self._index[label] for label in joint.secondaries]
        value = self._counters.value

        def required(state: int) -> int | None:
            has_primary = value(state, primary) > 0
            return 0 if all([(value(state, index) > 0) == has_primary for index in secondaries]) else None

        def preferred(state: int) -> int:
            primaries = value(state, primary)
            there = [value(state, index) for index in secondaries]
            alone = primaries * there.count(0) if primaries else sum(there)
            return alone * self.costs.missed[level]

        return required if joint.required else preferred

    def _wish(self, within: Within, level: int) -> Closing:
        mask = self._mask(within.groups)
        return lambda state: self.costs.missed[level] if state & mask else 0

    def _mask(self, labels: Sequence[str]) -> int:
        return self._counters.mask([self._index[label] for label in labels])


def _absent_around(joint: Joint, label: str) -> int:
    """Return how many groups a device of a group misses where there is no place at all."""
    if label == joint.primary:
        return len(joint.secondaries)
    return 1 if label in joint.secondaries else 0


def _counter_of(group: Group) -> Counter:
    if group.per_subtree:
        # One is counted even if none is demanded: the rules have to see that it is there.
        return Counter(max(group.count, 1), group.count, saturates=True)
    return Counter(group.count, group.count)


def _fit_together(device: Device, groups: Sequence[Group]) -> bool:
    """Tell whether one device can serve groups at once."""
    if sum([group.apart for group in groups]) > 1:
        return False
    return all([sum([group.amounts.get(name, 0) for group in groups]) <= room for name, room in device.room.items()])


def _merged_best(left: Table, right: Table, counters: Counters) -> Table:
    """Return the merged table where only the best way to each state is wanted: the innermost loop of the search."""
    offset, guard, settled = counters.offset, counters.guard, counters.settled
    best: dict[int, int] = {}
    others = [(state, costs[0]) for state, costs in right.items()]
    for state, (cost,) in left.items():
        for other, more in others:
            both: int | None = state + other
            if (state + other + offset) & guard:
                both = settled(state + other)
                if both is None:
                    continue
            sum_ = cost + more
            known = best.get(both)  # type: ignore[arg-type]  # not None here
            if known is None or sum_ < known:
                best[both] = sum_  # type: ignore[index]
    return {state: [cost] for state, cost in best.items()}

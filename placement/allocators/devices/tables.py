"""The tables of the device allocator's search: what a state counts, which states to drop, and how to merge tables.

A state is some small counters packed into one integer, so that adding two sets of counts is one addition. A table grows
device by device. Say a request wants two GPUs and three NICs, and the devices yet to come are one GPU and no NIC: then
only states with at least one GPU and exactly three NICs can still serve it. All others are dropped.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from math import inf
from typing import Final, NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.devices.request import Group


class Counter(NamedTuple):
    """A counter with a final value from ``least`` to ``limit``. A saturating one sticks at ``limit``."""

    limit: int
    least: int
    saturates: bool = False


class Counters:
    """The layout of packed counters. Each has a spare bit, which adding ``offset`` sets if it exceeds its limit.

    >>> pair = Counters([Counter(2, 2), Counter(1, 1, saturates=True)])
    >>> both = pair.units[0] + pair.units[1]
    >>> pair.value(pair.settled(both + both), 1), pair.settled(both + both + both)
    (1, None)
    """

    def __init__(self, counters: Sequence[Counter]) -> None:
        self._counters = counters
        field = 1 + max([0, *[counter.limit for counter in counters]]).bit_length()
        self._field = (1 << field) - 1
        self._shifts = range(0, field * len(counters), field)
        self.units = [1 << shift for shift in self._shifts]
        self.offset = self.guard = 0
        self.forbids = 0
        """The spare bits of counters that must not exceed their limit."""
        self.sticky = 0
        """The spare bits of saturating counters whose limit is greater than 1."""
        self._sticky: list[tuple[int, int, int]] = []  # The spare bit, shift and limit of each.
        for counter, shift in zip(counters, self._shifts, strict=True):
            width = counter.limit.bit_length()
            self.offset |= ((1 << width) - 1 - counter.limit) << shift
            spare = 1 << (shift + width)
            self.guard |= spare
            if not counter.saturates:
                self.forbids |= spare
            elif counter.limit > 1:
                self.sticky |= spare
                self._sticky.append((spare, shift, counter.limit))

    def value(self, state: int, index: int) -> int:
        """Return the value of a counter."""
        return state >> self._shifts[index] & self._field

    def mask(self, indices: Sequence[int]) -> int:
        """Return the bits of these counters: all are 0 in a state if and only if these counters are."""
        return sum([self._field << self._shifts[index] for index in indices])

    def settled(self, state: int) -> int | None:
        """Clamp the saturating counters in the sum of two states; return None if another counter is too high."""
        too_high = (state + self.offset) & self.guard
        if too_high & self.forbids:
            return None
        return self.cut(state, too_high) if too_high else state

    def cut(self, state: int, too_high: int) -> int:
        """Set the saturating counters that exceed their limit, given by their spare bits, back to it.

        ``state`` is the sum of two states. If none of these counters is in ``sticky``, all of them are 2 instead of 1,
        and this is just ``state - (too_high >> 1)``.
        """
        for spare, shift, highest in self._sticky:
            if too_high & spare:
                state -= ((state >> shift & self._field) - highest) << shift
        return state - ((too_high & ~self.sticky) >> 1)

    def floor(self, least: Sequence[int]) -> int:
        """Return what ``reaches`` takes: least values of the first counters, packed; all others may be 0."""
        return self.guard - sum([max(0, number) << shift for number, shift in zip(least, self._shifts, strict=False)])

    def reaches(self, state: int, floor: int) -> bool:
        """Tell whether every counter reaches its floor."""
        return (state + floor) & self.guard == self.guard

    def is_enough(self, state: int) -> bool:
        """Tell whether every counter has reached its least value."""
        return all([self.value(state, index) >= counter.least for index, counter in enumerate(self._counters)])


class Pruning(NamedTuple):
    """What a state must have, so that the devices outside can complete it.

    Args:
        floor: least values of all counters, as ``Counters.reaches`` wants them; 0 if any will do.
        settled: the bits of the counters that must have their final values, as nothing outside adds to them.
        final: these values, as a state.
    """

    floor: int = 0
    settled: int = 0
    final: int = 0


NO_PRUNING: Final = Pruning()


class Pruner:
    """Tells what can be dropped for the groups of one request, whose counters come first.

    The example above: for two GPUs and three NICs, one device outside is too few for the first group by one, and none
    is too few for the second by three.

    >>> counters = Counters([Counter(2, 2), Counter(3, 3)])
    >>> groups = [Group(label="gpu", options={}, count=2), Group(label="nic", options={}, count=3)]
    >>> pruning = Pruner(groups, counters).pruning([-1, -3])
    >>> gpu, nic = counters.units
    >>> [counters.reaches(state, pruning.floor) for state in (3 * nic, gpu + 2 * nic, gpu + 3 * nic)]
    [False, False, True]
    """

    def __init__(self, groups: Sequence[Group], counters: Counters) -> None:
        self._guard = counters.guard
        self._rows = [
            (unit, counters.mask([index]), -group.count if not group.per_subtree else -inf)
            for index, (group, unit) in enumerate(zip(groups, counters.units, strict=False))
        ]

    def pruning(self, spare: Sequence[int]) -> Pruning:
        """Return what a table can do without; ``spare`` has by group the options outside minus what is wanted."""
        if min(spare) >= 0:
            return NO_PRUNING
        floor, settled, final = self._guard, 0, 0
        for (unit, mask, none_outside), more in zip(self._rows, spare, strict=True):
            if more < 0:
                floor += more * unit
                if more == none_outside:
                    settled, final = settled | mask, final - more * unit
        return Pruning(floor, settled, final)


Table = dict[int, list[int]]
"""State -> the costs of the best ways to get there, ascending."""

NOTHING_TAKEN: Final[Table] = {0: [0]}
"""The table of no device."""

_Partners = Sequence[Sequence[tuple[int, int]]]
"""For each state of a table the (least cost, state) pairs of another table that it may be merged with."""


class Tables:
    """Merges the tables of one search: ``max_ways`` are kept for each state, the budget counts pairs of states."""

    def __init__(self, counters: Counters, *, max_ways: int, budget: Budget) -> None:
        self._counters = counters
        self._max_ways = max_ways
        self.budget = budget

    @property
    def is_over(self) -> bool:
        """Whether the budget was hit; tables are unreliable then."""
        return self.budget.was_hit

    def merged(self, left: Table, right: Table, pruning: Pruning = NO_PRUNING) -> Table:
        """Return the table of two disjoint sets of devices together, pruned."""
        if left == NOTHING_TAKEN:
            self.budget.take(len(right))
            return {0: [0]} if self.is_over else self._pruned(right, pruning)
        # A state with one NIC is merged only with states that have the other two, if no further NIC is to come.
        by_settled: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for state, costs in right.items():
            by_settled[state & pruning.settled].append((costs[0], state))
        partners = [by_settled.get(pruning.final - (state & pruning.settled), ()) for state in left]
        self.budget.take(max(len(left), sum(map(len, partners))))
        if self.is_over:
            return {0: [0]}
        table = self._best_of(left, partners) if self._max_ways == 1 else self._several_of(left, right, partners)
        return self._pruned(table, pruning)

    def _pruned(self, table: Table, pruning: Pruning) -> Table:
        """Drop states that the devices outside cannot complete."""
        if not pruning.floor:
            return table
        floor, guard = pruning.floor, self._counters.guard  # ``Counters.reaches``, but without a call for each state.
        return {state: costs for state, costs in table.items() if (state + floor) & guard == guard}

    def on_one_card(self, left: Table, right: Table, caps: Sequence[tuple[int, int]]) -> Table:
        """Return the table of two parts of one card; ``caps`` has for counters, by index, how many a card may serve."""
        value = self._counters.value
        self.budget.take(len(left) * len(right))
        table: Table = defaultdict(list)
        for state, partner in product(left, right) if not self.is_over else ():
            joint = self._counters.settled(state + partner)
            if joint is not None and all([value(state, index) + value(partner, index) <= cap for index, cap in caps]):
                table[joint] += [cost + more for cost in left[state] for more in right[partner]]
        return {state: sorted(costs)[: self._max_ways] for state, costs in table.items()}

    def _several_of(self, left: Table, right: Table, partners: _Partners) -> Table:
        counters, max_ways = self._counters, self._max_ways
        offset, guard, forbids, sticky = counters.offset, counters.guard, counters.forbids, counters.sticky
        pairs: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for (state, costs), row in zip(left.items(), partners, strict=True):
            with_offset, cost = state + offset, costs[0]
            for more, partner in row:
                joint, too_high = state + partner, (with_offset + partner) & guard
                if too_high:
                    if too_high & forbids:
                        continue
                    joint = counters.cut(joint, too_high) if too_high & sticky else joint - (too_high >> 1)
                pairs[joint].append((cost + more, state, partner))
        table = {}
        for joint, of_state in pairs.items():
            cheapest = sorted(of_state)[:max_ways]  # Each further pair costs at least as much as each of these.
            pairs_of_costs = [product(left[state], right[partner]) for _least, state, partner in cheapest]
            sums = [cost + more for costs in pairs_of_costs for cost, more in costs]
            table[joint] = sorted(sums)[:max_ways]
        return table

    def _best_of(self, left: Table, partners: _Partners) -> Table:
        """Merge where only the best way to each state is kept, in half the time."""
        counters = self._counters
        offset, guard, forbids, sticky = counters.offset, counters.guard, counters.forbids, counters.sticky
        best: dict[int, int] = {}
        known_sum = best.get
        for (state, (cost,)), row in zip(left.items(), partners, strict=True):
            with_offset = state + offset
            for more, partner in row:
                joint, too_high = state + partner, (with_offset + partner) & guard
                if too_high:
                    if too_high & forbids:
                        continue
                    joint = counters.cut(joint, too_high) if too_high & sticky else joint - (too_high >> 1)
                sum_, so_far = cost + more, known_sum(joint)
                if so_far is None or sum_ < so_far:
                    best[joint] = sum_
        return {state: [cost] for state, cost in best.items()}

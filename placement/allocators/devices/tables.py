"""The tables of the device allocator's search: what a state counts, what it costs, and how tables are merged.

A state is some small counters packed into one integer, and so is a cost, so that adding two sets of counts, or
comparing two objectives, is one operation. A table grows device by device. Say a request wants two GPUs and three NICs,
and the devices yet to come are one GPU and no NIC: then only states with at least one GPU and exactly three NICs can
still serve it. All others are dropped.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

from placement.allocators import Budget


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
        """Set saturating counters of a sum of two states back to their limit; ``too_high`` has their spare bits."""
        for spare, shift, highest in self._sticky:
            if too_high & spare:
                state -= ((state >> shift & self._field) - highest) << shift
        return state - ((too_high & ~self.sticky) >> 1)

    def floor(self, least: Sequence[int]) -> int:
        """Return the floor of states whose first counters have at least these values, the others any.

        A state reaches it if their sum has all bits of ``guard``.
        """
        return self.guard - sum([max(0, number) << shift for number, shift in zip(least, self._shifts, strict=False)])

    def is_enough(self, state: int) -> bool:
        """Tell whether every counter has reached its least value."""
        return all([self.value(state, index) >= counter.least for index, counter in enumerate(self._counters)])


@dataclass(frozen=True, slots=True)
class DeviceObjective:
    """The quality of an allocation: smaller is better, compared lexicographically.

    Args:
        missed, touched: for each level, outermost first: unmet wishes, and places touched, at least 1.
        devices: the devices taken, counted once for each group they serve.
        free: for each level, the devices that could have been taken in the touched places.
    """

    missed: tuple[int, ...]
    touched: tuple[int, ...]
    devices: int
    free: tuple[int, ...]
    misfit: int

    @property
    def rank(self) -> tuple[int, ...]:
        """The sort key, the most important component first."""
        by_level = [number for pair in zip(self.missed, self.touched, strict=True) for number in pair]
        return (*by_level, self.devices, *self.free, self.misfit)


_FIELD = 24
"""Bits of a part of a cost: sums stay below 16 million."""


class Costs:
    """The layout of costs: the rank of an objective, and below it the choice that led there.

    The choice has a bit for each option, subtracted when the option is chosen, so that earlier options win among
    equals. Touching places of the last ``uncounted`` levels costs nothing.
    """

    def __init__(self, levels: int, options: int, *, uncounted: int = 0) -> None:
        levels -= uncounted
        self._levels = levels
        self._options = options
        fields = 3 * levels + 2
        units = [1 << (options + _FIELD * (fields - 1 - place)) for place in range(fields)]
        nothing = [0] * uncounted
        self.missed = units[0 : 2 * levels : 2] + nothing
        self.touched = units[1 : 2 * levels : 2] + nothing
        self.device = units[2 * levels]
        self.free = units[2 * levels + 1 : 3 * levels + 1] + nothing
        self.misfit = units[3 * levels + 1]

    def choice(self, option: int) -> int:
        """Return the cost that records that an option was chosen."""
        return -(1 << (self._options - 1 - option))

    def chosen(self, cost: int) -> list[int]:
        """Decode the options recorded in a cost, ascending."""
        bits, numbers = -cost & ((1 << self._options) - 1), []
        while bits:
            numbers.append(self._options - bits.bit_length())
            bits -= 1 << bits.bit_length() - 1
        return numbers

    def of_whole(self, cost: int) -> int:
        """Return the cost of a complete way: touching no place of a level counts like touching one."""
        touched = self.objective(cost).touched
        return cost + sum([unit for unit, number in zip(self.touched, touched, strict=False) if not number])

    def objective(self, cost: int) -> DeviceObjective:
        """Unpack the objective from a cost."""
        sums, levels = -(-cost >> self._options), self._levels
        shifts = range(_FIELD * (3 * levels + 1), -1, -_FIELD)
        fields = tuple([sums >> shift & ((1 << _FIELD) - 1) for shift in shifts])
        by_level, free = fields[: 2 * levels], fields[2 * levels + 1 : -1]
        return DeviceObjective(by_level[::2], by_level[1::2], devices=fields[2 * levels], free=free, misfit=fields[-1])


class Pruning(NamedTuple):
    """What a state must have, so that the devices outside can complete it.

    All counters reach ``floor``, unless it is 0; those of the bits ``settled`` get nothing from outside and equal
    ``final``.
    """

    floor: int = 0
    settled: int = 0
    final: int = 0


NO_PRUNING: Final = Pruning()

Table = dict[int, list[int]]
"""State -> the costs of the best ways to get there, ascending."""

NOTHING_TAKEN: Final[Table] = {0: [0]}
"""The table of no device."""

_Partners = Sequence[Sequence[tuple[int, int]]]
"""For each state of a table the (least cost, state) pairs of another table that it may be merged with."""


class Tables:
    """Merges the tables of one search, with ``max_ways`` for each state; a step is a pair of states.

    Once the budget is hit, tables are unreliable.
    """

    def __init__(self, counters: Counters, *, max_ways: int, budget: Budget) -> None:
        self._counters = counters
        self._max_ways = max_ways
        self.budget = budget

    def merged(self, left: Table, right: Table, pruning: Pruning = NO_PRUNING) -> Table:
        """Return the table of two disjoint sets of devices together, without states that cannot be completed."""
        if left == NOTHING_TAKEN:
            self.budget.take(len(right))
            table = right
        else:
            # A state with one NIC is merged only with states that have the other two, if no further NIC is to come.
            by_settled: dict[int, list[tuple[int, int]]] = defaultdict(list)
            for state, costs in right.items():
                by_settled[state & pruning.settled].append((costs[0], state))
            partners = [by_settled.get(pruning.final - (state & pruning.settled), ()) for state in left]
            self.budget.take(max(len(left), sum(map(len, partners))))
            if self.budget.was_hit:
                return {0: [0]}
            table = self._best_of(left, partners) if self._max_ways == 1 else self._several_of(left, right, partners)
        if not pruning.floor or self.budget.was_hit:
            return table
        floor, guard = pruning.floor, self._counters.guard
        return {state: costs for state, costs in table.items() if (state + floor) & guard == guard}

    def on_one_card(self, left: Table, right: Table, caps: Sequence[tuple[int, int]]) -> Table:
        """Return the table of two parts of one card; ``caps`` has for counters, by index, how many a card may serve."""
        value = self._counters.value
        self.budget.take(len(left) * len(right))
        table: Table = defaultdict(list)
        for state, partner in product(left, right) if not self.budget.was_hit else ():
            joint = self._counters.settled(state + partner)
            if joint is not None and all([value(state, index) + value(partner, index) <= cap for index, cap in caps]):
                table[joint] += [cost + more for cost in left[state] for more in right[partner]]
        return {state: sorted(costs)[: self._max_ways] for state, costs in table.items()}

    def _several_of(self, left: Table, right: Table, partners: _Partners) -> Table:
        pairs: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for (state, costs), row in zip(left.items(), partners, strict=True):
            for more, partner in row:
                joint = self._counters.settled(state + partner)
                if joint is not None:
                    pairs[joint].append((costs[0] + more, state, partner))
        table = {}
        for joint, of_state in pairs.items():
            cheapest = sorted(of_state)[: self._max_ways]  # Each further pair costs at least as much as each of these.
            pairs_of_costs = [product(left[state], right[partner]) for _least, state, partner in cheapest]
            sums = [cost + more for costs in pairs_of_costs for cost, more in costs]
            table[joint] = sorted(sums)[: self._max_ways]
        return table

    def _best_of(self, left: Table, partners: _Partners) -> Table:
        """Merge where only the best way to each state is kept: half of a search's time, so ``settled`` is inlined."""
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

"""The tables of the device allocator's search and how to merge them: the innermost loops, and their limits."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

from placement.allocators.budget import Budget
from placement.allocators.devices.counters import NO_PRUNING, Counters, Pruning

Table = dict[int, list[int]]
"""State (packed counters) -> the costs of the best ways to get there, ascending."""

NOTHING_TAKEN: Final[Table] = {0: [0]}
"""The table of no device."""


class Tables:
    """Merges the tables of one search.

    Args:
        counters: the layout of states.
        most: how many ways to keep for each state.
        budget: the pairs of states to look at.
        width: how many states to keep in a table; None keeps all.
    """

    def __init__(self, counters: Counters, *, most: int, budget: Budget, width: int | None = None) -> None:
        self._counters = counters
        self._most = most
        self.budget = budget
        self._width = width

    @property
    def is_over(self) -> bool:
        """Whether the budget was hit; tables are unreliable then."""
        return self.budget.was_hit

    def merged(self, left: Table, right: Table, pruning: Pruning = NO_PRUNING) -> Table:
        """Return the table of two disjoint sets of devices together, pruned."""
        if left == NOTHING_TAKEN:
            self.budget.take(len(right))
            return {0: [0]} if self.is_over else self.narrowed(self.pruned(right, pruning))
        others = self._others(left, right, pruning)
        self.budget.take(max(len(left), sum(map(len, others))))
        if self.is_over:
            return {0: [0]}
        merge = self._merged_best if self._most == 1 else self._merged_several
        return self.narrowed(self.pruned(merge(left, right, others), pruning))

    def pruned(self, table: Table, pruning: Pruning) -> Table:
        """Drop states that the devices outside cannot complete."""
        if not pruning.floor:
            return table
        floor, guard = pruning.floor, self._counters.guard  # ``Counters.reaches``, but without a call for each state.
        return {state: costs for state, costs in table.items() if (state + floor) & guard == guard}

    def _others(self, left: Table, right: Table, pruning: Pruning) -> Sequence[Sequence[tuple[int, int]]]:
        """Return for each state of one table the (least cost, state) pairs of the other that it may be merged with."""
        every: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for state, costs in right.items():
            every[state & pruning.settled].append((costs[0], state))
        return [every.get(pruning.complement(state), ()) for state in left]

    def on_one_card(self, left: Table, right: Table, caps: Sequence[tuple[int, int]]) -> Table:
        """Return the table of two parts of one card.

        ``caps`` has the index of each counter of which a card may serve only so many, and how many.
        """
        value = self._counters.value
        self.budget.take(len(left) * len(right))
        table: Table = defaultdict(list)
        for state, other in product(left, right) if not self.is_over else ():
            both = self._counters.settled(state + other)
            if both is not None and all([value(state, one) + value(other, one) <= cap for one, cap in caps]):
                table[both] += [cost + more for cost in left[state] for more in right[other]]
        return {state: sorted(costs)[: self._most] for state, costs in table.items()}

    def _merged_several(self, left: Table, right: Table, others: Sequence[Sequence[tuple[int, int]]]) -> Table:
        offset, guard, forbids, sticky, cut = self._layout
        pairs: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for (state, costs), some in zip(left.items(), others, strict=True):
            with_offset, cost = state + offset, costs[0]
            for more, other in some:
                both, too_high = state + other, (with_offset + other) & guard
                if too_high:
                    if too_high & forbids:
                        continue
                    both = cut(both, too_high) if too_high & sticky else both - (too_high >> 1)
                pairs[both].append((cost + more, state, other))
        return {both: self._least_sums(some, left, right) for both, some in pairs.items()}

    def _least_sums(self, pairs: list[tuple[int, int, int]], left: Table, right: Table) -> list[int]:
        """Return the least of the costs that pairs of states have together, given with the least cost of each pair."""
        cheapest = sorted(pairs)[: self._most]  # Each further pair costs at least as much as each of these.
        sums = [cost + more for _least, one, other in cheapest for cost in left[one] for more in right[other]]
        return sorted(sums)[: self._most]

    def _merged_best(self, left: Table, _right: Table, others: Sequence[Sequence[tuple[int, int]]]) -> Table:
        """Merge where only the best way to each state is kept, in half the time."""
        offset, guard, forbids, sticky, cut = self._layout
        best: dict[int, int] = {}
        known_sum = best.get
        for (state, (cost,)), some in zip(left.items(), others, strict=True):
            with_offset = state + offset
            for more, other in some:
                both, too_high = state + other, (with_offset + other) & guard
                if too_high:
                    if too_high & forbids:
                        continue
                    both = cut(both, too_high) if too_high & sticky else both - (too_high >> 1)
                sum_, known = cost + more, known_sum(both)
                if known is None or sum_ < known:
                    best[both] = sum_
        return {state: [cost] for state, cost in best.items()}

    @property
    def _layout(self) -> tuple[int, int, int, int, Callable[[int, int], int]]:
        """What the innermost loops need of the counters."""
        counters = self._counters
        return counters.offset, counters.guard, counters.forbids, counters.sticky, counters.cut

    def narrowed(self, table: Table) -> Table:
        """Keep the cheapest states of a table, and those that serve the most."""
        if self._width is None or len(table) <= self._width:
            return table
        cheapest = sorted(table, key=table.__getitem__)[: self._width // 2]
        served = self._counters.total
        fullest = sorted(table, key=lambda state: (-served(state), table[state]))[: self._width // 2]
        return {state: table[state] for state in (*cheapest, *fullest)}

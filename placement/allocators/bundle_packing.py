"""How many copies of a request fit, one after another, without moving anything that is already there.

A copy takes a bundle: what one of its candidates takes of each provider and class. Copies fit in any order if their
sums fit, so the question is how often to take each way. Branch and bound decides it, ignoring cells that cannot run
out, and independently for ways that share no cell: exact within the budget. Units of pools are a flow.

>>> BundlePacking([{0: 2, 1: 2}, {0: 3}, {1: 3}], [{0, 1}]).copies([5, 6], budget=Budget(100))
Copies(least=3, max_count=3)
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from placement.allocators import Budget

UNLIMITED = 2**62


class Copies(NamedTuple):
    """Bounds on a number of copies: ``least`` are known to fit, more than ``max_count`` cannot."""

    least: int
    max_count: int

    @property
    def is_exact(self) -> bool:
        """Whether the bounds meet."""
        return self.least == self.max_count


def exactly(copies: int) -> Copies:
    """Return a number that is known exactly."""
    return Copies(copies, copies)


def most_that_fit(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to ``limit`` that fits, if smaller ones always do.

    >>> most_that_fit(10, lambda number: number * number < 50)
    7
    """
    return bisect_right(range(1, limit + 1), 0, key=lambda number: 0 if fits(number) else 1)


def drawn(demands: Mapping[frozenset[int], int], room: Mapping[int, int]) -> int:
    """Return how many units can be drawn when every demand is for one unit. O(sets x pools) per path, of which few.

    ``demands`` has the number of demands by the pools that they may draw from, ``room`` the units of each pool.

    >>> drawn({frozenset({1}): 2, frozenset({1, 2}): 3}, {1: 2, 2: 2})
    4
    """
    unmet, free, flows = dict(demands), dict(room), Counter[tuple[frozenset[int], int]]()
    while path := _path(unmet, free, flows):
        swaps = [(after[0], before[1]) for before, after in pairwise(path)]
        moved = min([unmet[path[0][0]], free[path[-1][1]], *[flows[swap] for swap in swaps]])
        unmet[path[0][0]] -= moved
        free[path[-1][1]] -= moved
        flows.subtract(dict.fromkeys(swaps, moved))
        flows.update(dict.fromkeys(path, moved))
    return sum(demands.values()) - sum(unmet.values())


DrawingPath = list[tuple[frozenset[int], int]]
"""(set of pools, the pool it draws from), step by step: each takes over what the next one gives up for another pool."""


def _path(
    unmet: Mapping[frozenset[int], int], free: Mapping[int, int], flows: Mapping[tuple[frozenset[int], int], int]
) -> DrawingPath | None:
    """Return the shortest path from an unmet demand to a pool with units left."""
    ways: list[tuple[frozenset[int], DrawingPath]] = [(pools, []) for pools, number in unmet.items() if number]
    visited: set[int] = set()
    for pools, path in ways:
        for pool in sorted(pools - visited):
            visited.add(pool)
            step = [*path, (pools, pool)]
            if free.get(pool, 0):
                return step
            ways += [(rivals, step) for (rivals, drawn_from), number in flows.items() if drawn_from == pool and number]
    return None


Bundle = Mapping[int, int]
"""Cell -> the amount taken from it, above 0; not empty."""


def undominated(bundles: Iterable[Bundle]) -> list[Bundle]:
    """Drop bundles that take at least as much of everything as another one.

    >>> undominated([{0: 2, 1: 1}, {0: 2}, {1: 3}, {0: 2}])
    [{0: 2}, {1: 3}]
    """
    unequal = {tuple(sorted(bundle.items())): bundle for bundle in bundles}
    kept: list[tuple[int, Bundle]] = []
    for bundle in sorted(unequal.values(), key=lambda bundle: (len(bundle), sum(bundle.values()))):
        cells = sum([1 << cell for cell in bundle])
        rivals = [rival for rival_cells, rival in kept if not rival_cells & ~cells]
        if not any([all([amount <= bundle[cell] for cell, amount in rival.items()]) for rival in rivals]):
            kept.append((cells, bundle))
    return [bundle for _cells, bundle in kept]


def _disjoint_parts(bundles: Iterable[Bundle]) -> list[list[Bundle]]:
    """Partition bundles into parts that have no cell in common."""
    parts: list[tuple[set[int], list[Bundle]]] = []
    for bundle in bundles:
        cells, joined = {*bundle}, [bundle]
        for part in [part for part in parts if not part[0].isdisjoint(bundle)]:
            cells |= part[0]
            joined += part[1]
            parts.remove(part)
        parts.append((cells, joined))
    return [joined for _cells, joined in parts]


class _Bound(NamedTuple):
    """An upper bound on a number of bundles.

    Of each kind of cells every bundle takes at least so much in total. Each cell has the unit and the most that one
    takes.
    """

    kinds: Sequence[tuple[int, Sequence[tuple[int, int, int]]]]

    def allows(self, copies: int, free: Sequence[int]) -> bool:
        """Tell whether so many bundles find enough of each kind, as any smaller number does then."""
        return all(
            copies * least
            <= sum([min(free[cell] - free[cell] % unit, copies * largest) for cell, unit, largest in cells])
            for least, cells in self.kinds
        )

    def copies(self, free: Sequence[int]) -> int:
        """Return the bound."""
        limit = min([sum([free[cell] for cell, _unit, _largest in cells]) // least for least, cells in self.kinds])
        return most_that_fit(limit, lambda copies: self.allows(copies, free))


def _bounds(bundles: Sequence[Bundle], kinds: Sequence[Collection[int]]) -> list[_Bound]:
    """Return the bounds for all bundles, for all but the first, and so on."""
    # Every bundle takes something of all cells together, whatever the kinds are.
    kinds = [*kinds, {cell for bundle in bundles for cell in bundle}]
    least, units, bounds = [UNLIMITED] * len(kinds), dict[int, tuple[int, int]](), []
    for bundle in reversed(bundles):
        for cell, amount in bundle.items():
            unit, largest = units.get(cell, (0, 0))
            units[cell] = gcd(unit, amount), max(largest, amount)
        least = [*map(min, least, [sum([bundle.get(cell, 0) for cell in kind]) for kind in kinds])]
        taken = [[(cell, *units[cell]) for cell in kind if cell in units] for kind in kinds]
        bounds.append(_Bound([(amount, cells) for amount, cells in zip(least, taken, strict=True) if amount]))
    return bounds[::-1]


class BundlePacking:
    """Bundles to pack into cells, whatever is free in them; reuses what does not depend on that.

    Bundles are the ways to take a copy, preferably ``undominated``; kinds the sets of cells to bound jointly.
    """

    def __init__(self, bundles: Sequence[Bundle], kinds: Sequence[Collection[int]]) -> None:
        self._bundles = bundles
        self._kinds = kinds
        self._bound = cache(lambda numbers: _bounds([bundles[number] for number in numbers], kinds)[0])
        self._parts = cache(self._parts_of)

    def copies(self, free: Sequence[int], *, budget: Budget) -> Copies:
        """Return how many bundles fit. If the budget runs out, the best packing found is the lower bound."""
        fits = [all([free[cell] >= amount for cell, amount in bundle.items()]) for bundle in self._bundles]
        numbers = tuple([number for number, is_fitting in enumerate(fits) if is_fitting])
        if not numbers:
            return exactly(0)
        bound = self._bound(numbers)
        limit = bound.copies(free)
        # Only cells that may run out before this many bundles are taken matter; all cells are of the last kind.
        scarce = tuple([cell for cell, _unit, largest in bound.kinds[-1][1] if free[cell] < largest * limit])
        copies = [part.copies(free, budget) for part in self._parts(numbers, scarce)]
        least, max_count = sum([part.least for part in copies]), sum([part.max_count for part in copies])
        return Copies(min(limit, least), min(limit, max_count)) if copies else exactly(limit)

    def _parts_of(self, numbers: tuple[int, ...], scarce: tuple[int, ...]) -> "list[_BundleSearch]":
        bundles = [self._bundles[number] for number in numbers]
        bound_by = [{cell: bundle[cell] for cell in bundle if cell in scarce} for bundle in bundles]
        # If some bundle needs no scarce cell, the bound is met.
        parts = _disjoint_parts(undominated(bound_by)) if all(bound_by) else []
        return [_BundleSearch(part, self._kinds) for part in parts]


class _BundleSearch:
    """A search for the most bundles of one part: branches on how often each bundle is taken, one after the other."""

    def __init__(self, bundles: Sequence[Bundle], kinds: Sequence[Collection[int]]) -> None:
        self._cells = sorted({cell for bundle in bundles for cell in bundle})
        number = {cell: index for index, cell in enumerate(self._cells)}
        kinds = [[number[cell] for cell in kind if cell in number] for kind in kinds]
        kinds += [[cell] for cell in range(len(self._cells))]
        self._bundles = [{number[cell]: amount for cell, amount in bundle.items()} for bundle in bundles]
        self._bounds = _bounds(self._bundles, kinds)

    def copies(self, free: Sequence[int], budget: Budget) -> Copies:
        """Return how many bundles fit."""
        remaining = tuple([free[cell] for cell in self._cells])
        self._budget = budget
        self._seen: dict[tuple[int, tuple[int, ...]], int] = {}
        self._best, self._most = 0, self._bounds[0].copies(remaining)
        is_complete = self._fill(0, remaining, 0)
        return exactly(self._best) if is_complete else Copies(self._best, self._most)

    def _fill(self, index: int, free: tuple[int, ...], taken: int) -> bool:
        """Take bundles from ``index`` on, in addition to those taken; False if there is no budget or need for more."""
        self._best = max(self._best, taken)
        # Branches that are pruned at once are steps as well: of a cell with 2^45 units there may be as many.
        if self._best >= self._most or not self._budget.take():
            return False
        # A branch is in vain that cannot improve, or whose state was seen with as many taken.
        if index == len(self._bundles) or self._seen.get((index, free), -1) >= taken:
            return True
        if not self._bounds[index].allows(self._best - taken + 1, free):
            return True
        self._seen[index, free] = taken
        items = self._bundles[index].items()
        for times in range(min([free[cell] // amount for cell, amount in items]), -1, -1):
            remaining = list(free)
            for cell, amount in items:
                remaining[cell] -= times * amount
            if not self._fill(index + 1, tuple(remaining), taken + times):
                return False
        return True

"""How many copies of a request fit, one after another, without moving anything that is already there.

A copy takes a bundle: what one of its candidates takes of each provider and class. Copies fit in any order if their
sums fit, so the question is how often to take each way. Branch and bound decides it, ignoring cells that cannot run
out, and independently for ways that share no cell: exact within the budget. Units of pools are a flow.

>>> BundlePacking([{0: 2, 1: 2}, {0: 3}, {1: 3}], [{0, 1}]).copies([5, 6], budget=Budget(100))
Copies(least=3, most=3)
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from placement.allocators.budget import Budget


def drawn(wanted: Mapping[frozenset[int], int], room: Mapping[int, int]) -> int:
    """Return how many units can be drawn when every demand is for one unit.

    O(sets x pools) per path. Paths are few, as each exhausts a set or a pool.

    ``wanted`` has the number of demands by the pools that they may draw from, ``room`` the units of each pool.

    >>> drawn({frozenset({1}): 2, frozenset({1, 2}): 3}, {1: 2, 2: 2})
    4
    """
    waiting, left = dict(wanted), dict(room)
    given: dict[tuple[frozenset[int], int], int] = {}
    while (path := _path(waiting, left, given)) is not None:
        moved = min([waiting[path[0][0]], left[path[-1][1]], *[given[swap] for swap in _swaps(path)]])
        waiting[path[0][0]] -= moved
        left[path[-1][1]] -= moved
        for swap in _swaps(path):
            given[swap] -= moved
        for step in path:
            given[step] = given.get(step, 0) + moved
    return sum(wanted.values()) - sum(waiting.values())


DrawingPath = list[tuple[frozenset[int], int]]
"""(set of pools, the pool it draws from), step by step: each takes over what the next one gives up for another pool."""


def _swaps(path: DrawingPath) -> Iterable[tuple[frozenset[int], int]]:
    """Return what is given up along a path."""
    return [(after[0], before[1]) for before, after in pairwise(path)]


def _path(
    waiting: Mapping[frozenset[int], int], left: Mapping[int, int], given: Mapping[tuple[frozenset[int], int], int]
) -> DrawingPath | None:
    """Return the shortest path from an unmet demand to a pool with units left."""
    queue: deque[tuple[AbstractSet[int], DrawingPath]] = deque(
        [(pools, []) for pools, number in waiting.items() if number]
    )
    seen: set[int] = set()
    while queue:
        pools, path = queue.popleft()
        for pool in sorted(pools - seen):
            seen.add(pool)
            step = [*path, (frozenset(pools), pool)]
            if left.get(pool, 0):
                return step
            queue += [(other, step) for (other, drawn_from), number in given.items() if drawn_from == pool and number]
    return None


UNLIMITED = 2**62


class Copies(NamedTuple):
    """Bounds on a number of copies: ``least`` are known to fit, more than ``most`` cannot."""

    least: int
    most: int

    @property
    def is_exact(self) -> bool:
        """Whether the bounds meet."""
        return self.least == self.most


def exactly(copies: int) -> Copies:
    """Return a number that is known exactly."""
    return Copies(copies, copies)


Bundle = Mapping[int, int]
"""Cell -> the amount taken from it, above 0; not empty."""

Items = tuple[tuple[int, int], ...]


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


class BundlePacking:
    """Bundles to pack into cells, whatever is free in them; reuses what does not depend on that.

    Bundles are the ways to take a copy, preferably ``undominated``; kinds the sets of cells to bound jointly.

    >>> packing = BundlePacking([{0: 2, 1: 2}, {0: 3}, {1: 3}], [{0}, {1}, {0, 1}])
    >>> packing.copies([5, 6], budget=Budget(100))
    Copies(least=3, most=3)
    """

    def __init__(self, bundles: Sequence[Bundle], kinds: Sequence[Collection[int]]) -> None:
        self._bundles = bundles
        self._kinds = kinds
        self._of_fitting: dict[tuple[int, ...], _Fitting] = {}

    def copies(self, free: Sequence[int], *, budget: Budget) -> Copies:
        """Return how many bundles fit. If the budget runs out, the best packing found is the lower bound."""
        fits = [all([free[cell] >= amount for cell, amount in bundle.items()]) for bundle in self._bundles]
        numbers = tuple([number for number, is_fitting in enumerate(fits) if is_fitting])
        if not numbers:
            return exactly(0)
        if numbers not in self._of_fitting:
            self._of_fitting[numbers] = _Fitting([self._bundles[number] for number in numbers], self._kinds)
        return self._of_fitting[numbers].copies(free, budget)


class _Fitting:
    """Bundles each of which fits on its own."""

    def __init__(self, bundles: Sequence[Bundle], kinds: Sequence[Collection[int]]) -> None:
        self._bundles = bundles
        self._kinds = kinds
        self._bound = _bounds(bundles, kinds)[0]
        self._largest: dict[int, int] = defaultdict(int)
        for bundle in bundles:
            for cell, amount in bundle.items():
                self._largest[cell] = max(self._largest[cell], amount)
        self._parts: dict[tuple[int, ...], list[_BundleSearch]] = {}

    def copies(self, free: Sequence[int], budget: Budget) -> Copies:
        most = self._bound.copies(free)
        # Only cells that may run out before this many bundles are taken matter.
        scarce = tuple([cell for cell, amount in self._largest.items() if free[cell] < amount * most])
        if scarce not in self._parts:
            bound_by = [{cell: bundle[cell] for cell in bundle if cell in scarce} for bundle in self._bundles]
            # If some bundle needs no scarce cell, the bound is met.
            parts = _apart(undominated(bound_by)) if all(bound_by) else []
            self._parts[scarce] = [_BundleSearch(part, self._kinds) for part in parts]
        if not self._parts[scarce]:
            return exactly(most)
        copies = [part.copies(free, budget) for part in self._parts[scarce]]
        return Copies(min(most, sum([part.least for part in copies])), min(most, sum([part.most for part in copies])))


def _apart(bundles: Sequence[Bundle]) -> list[list[Bundle]]:
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


class _CellSet(NamedTuple):
    """Cells of which every bundle takes at least ``least`` in total; for each the unit and the most that one takes."""

    least: int
    cells: tuple[tuple[int, int, int], ...]


class _Bound(NamedTuple):
    """An upper bound on the number of bundles."""

    kinds: Sequence[_CellSet]

    def copies(self, free: Sequence[int]) -> int:
        """Return the bound: n bundles take at least n times the least of each kind, and no more than what is free."""
        bounds = []
        for kind in self.kinds:
            usable = [(free[cell] - free[cell] % unit, largest) for cell, unit, largest in kind.cells]
            fitting, before = sum([much for much, _largest in usable]) // kind.least, -1
            while fitting != before:
                before = fitting
                fitting = sum([min(much, before * largest) for much, largest in usable]) // kind.least
            bounds.append(fitting)
        return min(bounds)

    def allows(self, copies: int, free: Sequence[int]) -> bool:
        """Tell whether the bound is at least so many: then each kind has enough, as it has for any smaller number."""
        return all(
            copies * least
            <= sum([min(free[cell] - free[cell] % unit, copies * largest) for cell, unit, largest in cells])
            for least, cells in self.kinds
        )


def _bounds(bundles: Sequence[Bundle], kinds: Sequence[Collection[int]]) -> list[_Bound]:
    """Return the bounds for all bundles, for all but the first, and so on."""
    # Every bundle takes something of all cells together, whatever the kinds are.
    kinds = [*kinds, {cell for bundle in bundles for cell in bundle}]
    least, units, bounds = [UNLIMITED] * len(kinds), dict[int, tuple[int, int]](), []
    for bundle in reversed(bundles):
        for cell, amount in bundle.items():
            unit, largest = units.get(cell, (0, 0))
            units[cell] = gcd(unit, amount), max(largest, amount)
        sums = [sum([bundle.get(cell, 0) for cell in kind]) for kind in kinds]
        least = [*map(min, least, sums)]
        taken = [tuple([(cell, *units[cell]) for cell in kind if cell in units]) for kind in kinds]
        bounds.append(_Bound([_CellSet(much, cells) for much, cells in zip(least, taken, strict=True) if much]))
    return bounds[::-1]


class _CutOff(Exception):
    """The search ends early: the budget ran out, or there can be no better packing."""


class _BundleSearch:
    """A search for the most bundles of one part: branches on how often each bundle is taken, one after the other."""

    def __init__(self, bundles: Sequence[Bundle], kinds: Sequence[Collection[int]]) -> None:
        self._cells = sorted({cell for bundle in bundles for cell in bundle})
        number = {cell: index for index, cell in enumerate(self._cells)}
        kinds = [[number[cell] for cell in kind if cell in number] for kind in kinds]
        kinds += [[cell] for cell in range(len(self._cells))]
        renamed = [{number[cell]: amount for cell, amount in bundle.items()} for bundle in bundles]
        self._bundles: list[Items] = [tuple(bundle.items()) for bundle in renamed]
        self._bounds = _bounds(renamed, kinds)

    def copies(self, free: Sequence[int], budget: Budget) -> Copies:
        """Return how many bundles fit."""
        left = tuple([free[cell] for cell in self._cells])
        self._budget = budget
        self._seen: dict[tuple[int, tuple[int, ...]], int] = {}
        self._found, self._most = 0, self._bounds[0].copies(left)
        try:
            self._fill(0, left, 0)
        except _CutOff:
            return Copies(self._found, self._most)
        return exactly(self._found)

    def _fill(self, index: int, free: tuple[int, ...], taken: int) -> None:
        """Take bundles from ``index`` on, in addition to those already taken."""
        self._found = max(self._found, taken)
        # Branches that are pruned at once are steps as well: of a cell with 2^45 units there may be as many.
        if self._found >= self._most or not self._budget.take():
            raise _CutOff
        # A branch is in vain that cannot improve, or whose state was seen with as many taken.
        if index == len(self._bundles) or self._seen.get((index, free), -1) >= taken:
            return
        if not self._bounds[index].allows(self._found - taken + 1, free):
            return
        self._seen[index, free] = taken
        items = self._bundles[index]
        for times in range(min([free[cell] // amount for cell, amount in items]), -1, -1):
            left = list(free)
            for cell, amount in items:
                left[cell] -= times * amount
            self._fill(index + 1, tuple(left), taken + times)

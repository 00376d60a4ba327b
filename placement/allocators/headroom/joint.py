"""How many bundles of several requests fit into the same cells side by side: the Pareto frontier of copy counts.

Enumerates every feasible count of each request but the last, in every way, and packs as many of the last one as fit.
Requests with few ways go first, since every way has to be tried.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from placement.allocators.budget import Budget
from placement.allocators.headroom.bundles import Bundle, BundlePacking, undominated

CopyCounts = tuple[int, ...]
"""The number of copies of each request."""

MAX_BUNDLES = 500
"""With more bundles than this in total, the frontier is not enumerated."""

STEPS_OF_A_PACKING = 10
"""The cost of packing the last request, unless there is only one way to take it."""


def parts_of(copies: int, shares: Sequence[Fraction]) -> CopyCounts:
    """Split a number of copies among the requests by their shares, rounding down."""
    return tuple([copies * share.numerator // share.denominator for share in shares])


class JointPacking:
    """The bundles of several requests, to be packed into cells together.

    Args:
        bundles: for each request the ways to take a copy.
        kinds: the sets of cells to bound jointly: those of one class.

    >>> packing = JointPacking([[{0: 2}], [{0: 3}, {1: 3}]], [{0, 1}])
    >>> packing.frontier({0: 6, 1: 3}, caps=(9, 9), budget=Budget(100))
    [(3, 1), (1, 2), (0, 3)]
    """

    def __init__(self, bundles: Sequence[Sequence[Bundle]], kinds: Sequence[Collection[int]]) -> None:
        self._order = sorted(range(len(bundles)), key=lambda number: (len(bundles[number]), number))
        self._bundles = [bundles[number] for number in self._order]
        self._largest = [_by_cell(max, of) for of in self._bundles]
        self._given = bundles
        self._kinds = kinds
        self._scarce: dict[tuple[int, ...], _Scarce] = {}
        self._of_sums: JointPacking | None = None

    def frontier(self, free: Mapping[int, int], *, caps: CopyCounts, budget: Budget) -> list[CopyCounts] | None:
        """Return the Pareto frontier of copy counts that fit together; None if the steps run out.

        Args:
            free: what is left of each cell.
            caps: an upper limit for each request; more copies are of no use.
            budget: the steps to spend.
        """
        ordered = tuple([caps[number] for number in self._order])
        if sum(map(len, self._bundles)) > MAX_BUNDLES:
            return None
        wanted: dict[int, int] = defaultdict(int)
        for largest_of, cap in zip(self._largest, ordered, strict=True):
            for cell, amount in largest_of.items():
                wanted[cell] += cap * amount
        scarce = tuple(sorted([cell for cell, amount in wanted.items() if free[cell] < amount]))
        if scarce not in self._scarce:
            self._scarce[scarce] = _Scarce(self._bundles, self._kinds, scarce)
        found = self._scarce[scarce].frontier([free[cell] for cell in scarce], ordered, budget)
        if found is None:
            return None
        place = [self._order.index(number) for number in range(len(caps))]
        return largest([tuple([one[index] for index in place]) for one in found])

    def bounding(self, free: Mapping[int, int], *, caps: CopyCounts, budget: Budget) -> list[CopyCounts]:
        """Return an upper bound on the frontier, by sums: everything that fits is dominated by one of these counts.

        >>> packing = JointPacking([[{0: 2}], [{0: 3}, {1: 3}]], [{0, 1}])
        >>> packing.bounding({0: 5, 1: 4}, caps=(9, 9), budget=Budget(100))
        [(4, 0), (3, 1), (1, 2), (0, 3)]
        """
        if self._of_sums is None:
            kind_of = {cell: kind for kind, cells in enumerate(self._kinds) for cell in cells}
            ways = [[_by_cell(min, [_summed(bundle, kind_of) for bundle in of])] if of else [] for of in self._given]
            self._of_sums = JointPacking(ways, [[kind] for kind in range(len(self._kinds))])
        sums = {kind: sum([free[cell] for cell in cells]) for kind, cells in enumerate(self._kinds)}
        return self._of_sums.frontier(sums, caps=caps, budget=budget) or [caps]

    def some(self, free: Mapping[int, int], *, caps: CopyCounts, shares: Sequence[Fraction]) -> list[CopyCounts]:
        """Return some feasible counts, found greedily: as many of a mix as fit, filled up with a single request.

        >>> packing = JointPacking([[{0: 2}], [{0: 3}, {1: 3}]], [{0, 1}])
        >>> packing.some({0: 6, 1: 3}, caps=(9, 9), shares=[Fraction(1, 2), Fraction(1, 2)])
        [(3, 0), (1, 2), (0, 3)]
        """
        hardest_first = sorted(range(len(caps)), key=lambda number: (caps[number], number))

        def lacking(copies: int) -> int:
            wanted = tuple(map(min, parts_of(copies, shares), caps))
            return sum(wanted) - sum(self._taken({**free}, wanted, hardest_first))

        whole = bisect_right(range(1, sum(caps) + 1), 0, key=lacking)
        found = []
        for copies in (whole, whole // 2):
            for number in range(len(caps)):
                left = {**free}
                wanted = tuple(map(min, parts_of(copies, shares), caps))
                first = self._taken(left, wanted, hardest_first)
                more = self._taken(left, caps, [number])
                found.append(tuple(map(min, map(int.__add__, first, more), caps)))
        return largest(found)

    def _taken(self, left: dict[int, int], wanted: CopyCounts, order: Sequence[int]) -> CopyCounts:
        """Take copies greedily, up to what is wanted, and return how many of each request were taken."""
        taken = [0] * len(wanted)
        for number in order:
            for bundle in self._given[number]:
                times = min([wanted[number] - taken[number], *[left[cell] // much for cell, much in bundle.items()]])
                taken[number] += times
                for cell, much in bundle.items():
                    left[cell] -= times * much
        return tuple(taken)


def _by_cell(choose: Callable[[list[int]], int], bundles: Sequence[Bundle]) -> dict[int, int]:
    """Return the largest or smallest amount that any of the bundles takes of each cell."""
    taken: dict[int, list[int]] = defaultdict(list)
    for bundle in bundles:
        for cell, amount in bundle.items():
            taken[cell].append(amount)
    found = {cell: choose([*amounts, *[0] * (len(bundles) > len(amounts))]) for cell, amounts in taken.items()}
    return {cell: amount for cell, amount in found.items() if amount}


def _summed(bundle: Bundle, kind_of: Mapping[int, int]) -> Bundle:
    """Return what a bundle takes of each kind of cell."""
    taken: dict[int, int] = defaultdict(int)
    for cell, amount in bundle.items():
        taken[kind_of[cell]] += amount
    return taken


def largest(found: Collection[CopyCounts]) -> list[CopyCounts]:
    """Return the undominated counts, the largest first.

    >>> largest([(1, 2), (3, 0), (1, 1), (1, 2)])
    [(3, 0), (1, 2)]
    """
    kept: list[CopyCounts] = []
    for one in sorted(set(found), reverse=True):
        if not any([all(map(int.__ge__, other, one)) for other in kept]):
            kept.append(one)
    return kept


class _StepsEnded(Exception):
    """The budget is used up."""


class _Scarce:
    """Bundles of several requests, restricted to the cells that may run out."""

    def __init__(
        self, bundles: Sequence[Sequence[Bundle]], kinds: Sequence[Collection[int]], scarce: Sequence[int]
    ) -> None:
        number = {cell: index for index, cell in enumerate(scarce)}
        renamed = [
            undominated([{number[cell]: amount for cell, amount in bundle.items() if cell in number} for bundle in of])
            for of in bundles
        ]
        self._first = renamed[:-1]
        self._last = renamed[-1]
        self._packing = BundlePacking(
            self._last, [kind for kind in [[number[cell] for cell in of if cell in number] for of in kinds] if kind]
        )

    def frontier(self, free: Sequence[int], caps: CopyCounts, budget: Budget) -> list[CopyCounts] | None:
        """Return the Pareto frontier; None if the steps run out."""
        self._caps = caps
        self._budget = budget
        self._known: dict[tuple[int, tuple[int, ...]], list[CopyCounts]] = {}
        try:
            return self._of(0, tuple(free))
        except _StepsEnded:
            return None

    def _of(self, request: int, free: tuple[int, ...]) -> list[CopyCounts]:
        """Return the frontier of a request and those after it; memoised by what is free."""
        known = self._known.get((request, free))
        if known is None:
            if request == len(self._first):
                known = [(self._most_of_last(free),)]
            else:
                taken: dict[tuple[int, ...], int] = {}
                for copies, left in self._takings(request, 0, free, self._caps[request]):
                    taken[left] = max(copies, taken.get(left, 0))
                known = largest([(n, *rest) for left, n in taken.items() for rest in self._of(request + 1, left)])
            self._known[request, free] = known
        return known

    def _takings(
        self, request: int, index: int, free: tuple[int, ...], most: int
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each number of copies that bundles from ``index`` on can provide, with what is left afterwards."""
        self._take(1)
        bundles = self._first[request]
        if index == len(bundles) or not bundles[index]:
            yield (most if index < len(bundles) else 0), free  # A way that takes nothing scarce is always available.
            return
        items = bundles[index].items()
        for times in range(min([most, *[free[cell] // amount for cell, amount in items]]) + 1):
            left = [*free]
            for cell, amount in items:
                left[cell] -= times * amount
            for copies, rest in self._takings(request, index + 1, tuple(left), most - times):
                yield times + copies, rest

    def _most_of_last(self, free: tuple[int, ...]) -> int:
        bundles, cap = self._last, self._caps[-1]
        if not all(bundles):
            return cap
        if len(bundles) == 1:
            self._take(1)
            return min([cap, *[free[cell] // amount for cell, amount in bundles[0].items()]])
        self._take(STEPS_OF_A_PACKING)
        copies = self._packing.copies(free, budget=self._budget)
        if not copies.is_exact:
            raise _StepsEnded
        return min(cap, copies.least)

    def _take(self, steps: int) -> None:
        if not self._budget.take(steps):
            raise _StepsEnded

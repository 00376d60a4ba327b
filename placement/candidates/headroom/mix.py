"""How many of a mix of requests fit, such as seven small ones for three with GPUs: between two bounds.

Of n copies in all, each request has its share, rounded down. The upper bound is what each request alone allows, and
what trees have left of each class that copies can use. For the lower one, trees are filled one after the other: as
evenly as possible, then with whatever still fits.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import ceil, gcd
from operator import mul, sub
from typing import NamedTuple

import numpy as np

from placement.allocators import Budget
from placement.allocators.bundle_packing import Copies, most_that_fit
from placement.candidates.headroom.counting import CopyCounter, CountedTrees
from placement.candidates.headroom.forms import ENDLESS, Cell, CloudInForms, TreesOfForm
from placement.candidates.headroom.totals import Headroom, total
from placement.cloud.providers import Ints, distinct_rows

STEPS = 200_000
"""How many ways may be tried to fill trees."""

CopyCounts = tuple[int, ...]
"""The number of copies of each request."""

WaysToTake = Sequence[Mapping[Cell, int]]


def of_mix(
    shares: Mapping[str, Fraction],
    counters: Mapping[str, CopyCounter],
    headrooms: Mapping[str, Headroom],
    *,
    ruled: Collection[str] = (),
) -> Copies:
    """Return how many copies of a mix fit, all requests together, given the headroom of each alone.

    Shares add up to 1. ``ruled`` are requests with rules beyond their plans; a tree that serves one of these serves no
    other request.
    """
    counted = {name: {trees.trees.number: trees for trees in headrooms[name].counted} for name in shares}
    mixed = [_Mixed(counters[name], counted[name], is_ruled=name in ruled) for name in shares]
    cloud, parts = mixed[0].counter.cloud, [*shares.values()]
    limits = _limits(mixed, cloud)

    def is_within_limits(copies: int) -> bool:
        return all([sum(map(mul, _parts(copies, parts), amounts)) <= usable for amounts, usable in limits])

    alone = [_most_in_all(headrooms[name].copies.max_count, share) for name, share in shares.items()]
    max_copies = most_that_fit(min([ENDLESS, *alone]), is_within_limits)
    trees = _equal_trees(mixed, cloud)
    taken = _FilledTrees(cloud, Budget(ENDLESS)).taken(_parts(max_copies, parts), trees)
    least = min([_most_in_all(copies, share) for copies, share in zip(taken, parts, strict=True)])
    budget = Budget(STEPS)

    def fits(more: int) -> bool:
        copies = _parts(least + more, parts)
        return _FilledTrees(cloud, budget).taken(copies, trees) == copies

    return Copies(least + most_that_fit(max_copies - least, fits) if least < max_copies else max_copies, max_copies)


class _Mixed(NamedTuple):
    """One of the requests of a mix, and its copies by number of form."""

    counter: CopyCounter
    counted: Mapping[int, CountedTrees]
    is_ruled: bool

    def alone(self, trees: TreesOfForm, *, at_least: bool) -> Ints:
        """Return how many copies fit into each tree of a form by themselves, at least or at most."""
        copies, counted = np.zeros(len(trees.trees), dtype=np.int64), self.counted.get(trees.number)
        if counted is not None:
            column = counted.least if at_least else counted.max_copies
            copies[np.searchsorted(trees.trees, counted.trees.trees)] = column
        return copies

    def ways(self, trees: TreesOfForm) -> WaysToTake | None:
        """Return what copies may take in trees of a form; None if that is unknown."""
        counted = self.counted.get(trees.number)
        return None if counted is None or self.is_ruled else self.counter.ways(counted)


def _parts(copies: int, shares: Sequence[Fraction]) -> CopyCounts:
    """Split a number of copies among the requests by their shares, rounding down."""
    return tuple([copies * share.numerator // share.denominator for share in shares])


def _most_in_all(copies: int, share: Fraction) -> int:
    """Return the largest total of which a request's share, rounded down, is no more than this many copies."""
    return ceil((copies + 1) / share) - 1


def _limits(mixed: Sequence[_Mixed], cloud: CloudInForms) -> list[tuple[list[int], int]]:
    """Return for each class what a copy of each request takes of it, and all of it that copies can use."""
    limits = []
    for resource_class, class_id in cloud.ids.classes.items():
        of_slots = [[portion for slot in request.counter.plan.slots for portion in slot.resources] for request in mixed]
        portions = [[amount for name, amount in row if name == resource_class] for row in of_slots]
        amounts = [*map(sum, portions)]
        # Only whole units are of use. No slot may ask for the class: rules take it.
        unit = gcd(*[amount for of_request in portions for amount in of_request]) or 1
        usable = sum([pool.free.get(class_id, 0) for pool in cloud.pools.values()])
        for trees in cloud.forms if any(amounts) else ():
            copies = [request.alone(trees, at_least=False) for request in mixed]
            free = [trees.cell(cell) // unit * unit for cell in trees.form.max_units if cell[1] == class_id]
            usable += total(np.minimum(sum(map(mul, copies, amounts)), sum(free)))
        limits.append((amounts, usable))
    return limits


class _EqualTrees(NamedTuple):
    """So many trees in which the same is free, what copies of each request may take, and how many fit by themselves."""

    ways: Sequence[WaysToTake | None]
    free: Mapping[Cell, int]
    alone: CopyCounts
    number: int


def _equal_trees(mixed: Sequence[_Mixed], cloud: CloudInForms) -> list[_EqualTrees]:
    """Return all trees that can serve anything, those first that can serve the fewest requests."""
    equal_trees = []
    for trees in cloud.forms:
        ways = [request.ways(trees) for request in mixed]
        cells = sorted({cell for of_request in ways for way in of_request or () for cell in way if cell[0] >= 0})
        alone = [request.alone(trees, at_least=True) for request in mixed]
        rows, numbers, _first = distinct_rows([*alone, *map(trees.cell, cells)])
        for row, number in zip(rows, np.bincount(numbers).tolist(), strict=True):
            copies, free = row[: len(mixed)], dict(zip(cells, row[len(mixed) :], strict=True))
            if any(copies):
                equal_trees.append(_EqualTrees(ways, free, copies, number))
    return sorted(equal_trees, key=lambda trees: len(trees.alone) - trees.alone.count(0))


class _FilledTrees:
    """Trees of a cloud being filled; the budget limits how often copies are placed."""

    def __init__(self, cloud: CloudInForms, budget: Budget) -> None:
        pools = cloud.pools.items()
        self._pools = {(number, class_id): free for number, pool in pools for class_id, free in pool.free.items()}
        self._budget = budget

    def taken(self, requested: CopyCounts, all_trees: Sequence[_EqualTrees]) -> CopyCounts:
        """Return how many copies of each request find a place, of those wanted."""
        lacking = requested
        for trees in all_trees:
            unfilled = trees.number
            while unfilled and any(lacking):
                taken, pools = self._in_tree(trees, lacking)
                if not any(taken):
                    break
                # Another tree takes the same as long as as much is lacking, and nothing was taken from pools.
                again = min([much // took for much, took in zip(lacking, taken, strict=True) if took])
                times = min(unfilled, again) if pools == self._pools else 1
                lacking = tuple([much - times * took for much, took in zip(lacking, taken, strict=True)])
                self._pools, unfilled = pools, unfilled - times
        return tuple(map(sub, requested, lacking))

    def _in_tree(self, trees: _EqualTrees, requested: CopyCounts) -> tuple[CopyCounts, dict[Cell, int]]:
        """Return what a tree takes, with what is left in pools: as evenly as possible, then whatever still fits."""
        enough = tuple(map(min, requested, trees.alone))
        for number, ways in enumerate(trees.ways):
            if ways is None and enough[number]:
                return tuple([much * (index == number) for index, much in enumerate(enough)]), self._pools
        shares = [Fraction(much * (room > 0), sum(requested)) for much, room in zip(requested, enough, strict=True)]
        totals = [_most_in_all(room, share) for room, share in zip(enough, shares, strict=True) if share]

        def fits(copies: int) -> bool:
            parts = _parts(copies, shares)
            return self._take({**self._pools, **trees.free}, trees, parts) == parts

        even = _parts(most_that_fit(min(totals, default=0), fits), shares)
        free = {**self._pools, **trees.free}
        self._take(free, trees, even)
        more = self._take(free, trees, tuple(map(sub, enough, even)))
        return tuple(map(sum, zip(even, more, strict=True))), {cell: free[cell] for cell in self._pools}

    def _take(self, free: dict[Cell, int], trees: _EqualTrees, limits: CopyCounts) -> CopyCounts:
        """Take up to so many copies from what is free, of which fewest fit first, and return how many of each."""
        taken = [0] * len(limits)
        for number in sorted(range(len(limits)), key=trees.alone.__getitem__):
            for way in trees.ways[number] or ():
                if taken[number] == limits[number] or not self._budget.take():
                    break
                times = min([limits[number] - taken[number], *[free[cell] // amount for cell, amount in way.items()]])
                taken[number] += times
                for cell, amount in way.items():
                    free[cell] -= times * amount
        return tuple(taken)

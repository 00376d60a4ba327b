"""How many of a mix of requests fit, such as seven small ones for three with GPUs: between two bounds.

Of n copies in all, each request has its share, rounded down. The upper bound is what each request alone allows, and
what trees have left of each class that copies can use. For the lower one, trees are filled one after the other: as
evenly as possible, then with whatever still fits.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from math import ceil, gcd
from typing import NamedTuple

import numpy as np

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Copies
from placement.candidates.headroom.counting import CopyCounter, CountedTrees, total
from placement.candidates.headroom.forms import ENDLESS, Cell, CloudInForms, TreesOfForm, distinct_rows
from placement.candidates.headroom.totals import Headroom
from placement.cloud.providers import Ints
from placement.domain.search_plan import Plan

STEPS = 200_000
"""How many ways may be tried to fill trees."""

CopyCounts = tuple[int, ...]
"""The number of copies of each request."""

WaysToTake = Sequence[Mapping[Cell, int]]


def of_mix(
    shares: Mapping[str, Fraction],
    counters: Mapping[str, CopyCounter],
    found: Mapping[str, Headroom],
    *,
    ruled: Collection[str] = (),
) -> Copies:
    """Return how many copies of a mix fit, all requests together.

    Args:
        shares: the share of all copies that each request has; they add up to 1.
        counters: the requests.
        found: the headroom of each alone.
        ruled: requests with rules beyond their plans; a tree that serves one of these serves no other request.
    """
    mixed = [
        _Mixed(
            counters[name],
            {of_form.trees.number: of_form for of_form in found[name].counted},
            found[name].copies,
            is_ruled=name in ruled,
        )
        for name in shares
    ]
    cloud = mixed[0].counter.cloud
    parts = [*shares.values()]
    most = _largest(
        ENDLESS, lambda copies: all(map(_at_most, _parts(copies, parts), [one.copies.most for one in mixed]))
    )
    for amounts, usable in _limits(mixed, cloud):
        most = _largest(most, _is_within(amounts, usable, parts))
    return Copies(_filled(_equal_trees(mixed, cloud), cloud, parts, most), most)


class _Mixed(NamedTuple):
    """One of the requests of a mix."""

    counter: CopyCounter
    counted: Mapping[int, CountedTrees]
    copies: Copies
    is_ruled: bool

    def amounts(self, classes: Mapping[str, int]) -> Counter[int]:
        """Return what a copy takes of each class."""
        amounts: Counter[int] = Counter()
        for slot in self.counter.plan.slots:
            amounts.update({classes[name]: amount for name, amount in slot.resources})
        return amounts

    def alone(self, trees: TreesOfForm, *, at_least: bool) -> Ints:
        """Return how many copies fit into each tree of a form by themselves, at least or at most."""
        copies, counted = np.zeros(len(trees.trees), dtype=np.int64), self.counted.get(trees.number)
        if counted is not None:
            copies[np.searchsorted(trees.trees, counted.trees.trees)] = counted.least if at_least else counted.most
        return copies

    def ways(self, trees: TreesOfForm) -> WaysToTake | None:
        """Return what copies may take in trees of a form; None if that is unknown."""
        counted = self.counted.get(trees.number)
        return None if counted is None or self.is_ruled else self.counter.ways(counted)


def _parts(copies: int, shares: Sequence[Fraction]) -> CopyCounts:
    """Split a number of copies among the requests by their shares, rounding down."""
    return tuple([copies * share.numerator // share.denominator for share in shares])


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to ``most`` that fits, if smaller ones always do."""
    return bisect_right(range(1, most + 1), 0, key=lambda copies: 0 if fits(copies) else 1)


def _at_most(copies: int, most: int) -> bool:
    return copies <= most


def _is_within(amounts: Sequence[int], usable: int, shares: Sequence[Fraction]) -> Callable[[int], bool]:
    return lambda copies: sum(map(int.__mul__, _parts(copies, shares), amounts)) <= usable


def _limits(mixed: Sequence[_Mixed], cloud: CloudInForms) -> list[tuple[list[int], int]]:
    """Return for each class what a copy of each request takes of it, and all of it that copies can use."""
    each = [one.amounts(cloud.ids.classes) for one in mixed]
    limits = []
    for class_id in {class_id for amounts in each for class_id in amounts}:
        amounts = [of_request[class_id] for of_request in each]
        # No slot may ask for the class: rules take it.
        unit = gcd(*[amount for one in mixed for amount in _amounts_of_slots(one.counter.plan, class_id, cloud)]) or 1
        usable = sum([pool.free.get(class_id, 0) for pool in cloud.pools.values()])
        for trees in cloud.forms:
            asked = sum([one.alone(trees, at_least=False) * amount for one, amount in zip(mixed, amounts, strict=True)])
            cells = [cell for cell in trees.form.max_units if cell[1] == class_id]
            free = sum([trees.free.cell(cell) // unit * unit for cell in cells])
            usable += total(np.minimum(asked, free))
        limits.append((amounts, usable))
    return limits


def _amounts_of_slots(plan: Plan, class_id: int, cloud: CloudInForms) -> list[int]:
    return [much for slot in plan.slots for name, much in slot.resources if cloud.ids.classes[name] == class_id]


class _EqualTrees(NamedTuple):
    """Trees in which the same is free.

    Args:
        ways: for each request what its copies may take there; None if unknown.
        free: what is free there, by cell.
        alone: how many copies of each request fit by themselves.
        number: how many there are.
    """

    ways: Sequence[WaysToTake | None]
    free: Mapping[Cell, int]
    alone: CopyCounts
    number: int


def _equal_trees(mixed: Sequence[_Mixed], cloud: CloudInForms) -> list[_EqualTrees]:
    """Return all trees that can serve anything, those first that can serve the fewest requests."""
    equal_trees = []
    for trees in cloud.forms:
        alone = [one.alone(trees, at_least=True) for one in mixed]
        ways = [one.ways(trees) for one in mixed]
        cells = sorted({cell for of in ways for way in of or () for cell in way if cell[0] >= 0})
        rows, numbers, _first = distinct_rows(np.column_stack([*alone, trees.free.table(cells)]))
        for row, number in zip(rows, np.bincount(numbers).tolist(), strict=True):
            if any(row[: len(mixed)]):
                free = dict(zip(cells, row[len(mixed) :], strict=True))
                equal_trees.append(_EqualTrees(ways, free, row[: len(mixed)], number))
    return sorted(equal_trees, key=lambda trees: len(trees.alone) - trees.alone.count(0))


def _filled(trees: Sequence[_EqualTrees], cloud: CloudInForms, shares: Sequence[Fraction], most: int) -> int:
    """Return how many copies fit if trees are filled one after the other; more often the more steps there are."""
    taken = _FilledTrees(cloud, Budget(ENDLESS)).taken(_parts(most, shares), trees)
    least = min([_most_in_all(copies, share) for copies, share in zip(taken, shares, strict=True)])
    budget = Budget(STEPS)

    def fits(more: int) -> bool:
        wanted = _parts(least + more, shares)
        return _FilledTrees(cloud, budget).taken(wanted, trees) == wanted

    return least + _largest(most - least, fits) if least < most else most


def _most_in_all(copies: int, share: Fraction) -> int:
    """Return the largest total of which a request's share, rounded down, is no more than this many copies."""
    return ceil((copies + 1) / share) - 1


class _FilledTrees:
    """Trees being filled.

    Args:
        cloud: the cloud they are in.
        budget: limits how often copies are placed.
    """

    def __init__(self, cloud: CloudInForms, budget: Budget) -> None:
        pools = cloud.pools.items()
        self._pools = {(number, class_id): free for number, pool in pools for class_id, free in pool.free.items()}
        self._budget = budget

    def taken(self, wanted: CopyCounts, all_trees: Sequence[_EqualTrees]) -> CopyCounts:
        """Return how many copies of each request find a place, of those wanted."""
        lacking = wanted
        for trees in all_trees:
            left = trees.number
            while left and any(lacking):
                taken, pools = self._in_tree(trees, lacking)
                if not any(taken):
                    break
                # Another tree takes the same as long as as much is lacking, and nothing was taken from pools.
                again = min([much // took for much, took in zip(lacking, taken, strict=True) if took])
                times = min(left, again) if pools == self._pools else 1
                lacking = tuple([much - times * took for much, took in zip(lacking, taken, strict=True)])
                self._pools, left = pools, left - times
        return tuple(map(int.__sub__, wanted, lacking))

    def _in_tree(self, trees: _EqualTrees, wanted: CopyCounts) -> tuple[CopyCounts, dict[Cell, int]]:
        """Return what a tree takes, with what is left in pools: as evenly as possible, then whatever still fits."""
        enough = tuple(map(min, wanted, trees.alone))
        for number, ways in enumerate(trees.ways):
            if ways is None and enough[number]:
                return tuple([much * (index == number) for index, much in enumerate(enough)]), self._pools
        shares = [Fraction(much * (most > 0), sum(wanted)) for much, most in zip(wanted, enough, strict=True)]
        highest = min(
            [_most_in_all(most, share) for most, share in zip(enough, shares, strict=True) if share], default=0
        )
        even = _parts(_largest(highest, lambda copies: self._is_possible(trees, _parts(copies, shares))), shares)
        left = {**self._pools, **trees.free}
        self._take(left, trees, even)
        more = self._take(left, trees, tuple(map(int.__sub__, enough, even)))
        return tuple(map(int.__add__, even, more)), {cell: left[cell] for cell in self._pools}

    def _is_possible(self, trees: _EqualTrees, counts: CopyCounts) -> bool:
        return self._take({**self._pools, **trees.free}, trees, counts) == counts

    def _take(self, left: dict[Cell, int], trees: _EqualTrees, wanted: CopyCounts) -> CopyCounts:
        """Take up to so many copies from what is left, of which fewest fit first, and return how many of each."""
        taken = [0] * len(wanted)
        for number in sorted(range(len(wanted)), key=trees.alone.__getitem__):
            for way in trees.ways[number] or ():
                if taken[number] == wanted[number] or not self._budget.take():
                    break
                times = min([wanted[number] - taken[number], *[left[cell] // amount for cell, amount in way.items()]])
                taken[number] += times
                for cell, amount in way.items():
                    left[cell] -= times * amount
        return tuple(taken)

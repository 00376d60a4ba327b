"""The order of the candidates of one tree: the most compact first, then the best fit.

Fewer places of the outermost level, then of the next; among those that touch as many, slot by slot the option that
comes first in the tree, which is the one in the place with least left. Without any place, candidates come in the order
of the search.

Where there are few candidates, or all are wanted, they are composed and sorted. Otherwise the search runs once for
each way to count places, the smallest first, and finds only candidates that touch exactly as many.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from math import inf, prod
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.candidates.regions import Regions, Touches
from placement.candidates.search import Budget, Choice, Composer, Steps
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree


class Composed(NamedTuple):
    """The candidates of a tree in order, at least one.

    ``counts`` are how many places of each level the first one touches; empty where levels do not matter.
    """

    counts: Counts
    choices: Iterator[Choice]


FEW = 100
"""So many combinations are composed and sorted faster than they are searched in order."""


class CompactFirst:
    """Composes the candidates of trees, the most compact first.

    Args:
        plan: what is asked for.
        budget: the steps that may be taken.
        all_wanted: whether every candidate will be taken, so that nothing is gained by finding the first ones first.
    """

    def __init__(self, plan: Plan, budget: Budget, *, all_wanted: bool) -> None:
        self._plan = plan
        self._budget = budget
        self._composer = Composer(plan, budget)
        self._few = inf if all_wanted else FEW
        consuming = [index for index, slot in enumerate(plan.slots) if slot.resources]
        self._consuming = partial(_at, consuming) if len(consuming) < len(plan.slots) else None

    def composed(self, tree: Tree) -> Composed | None:
        """Return the choices of providers that serve the plan in a tree, in order; None if there is none.

        Brings the options of the tree into the order of their fit. Stops early, and notes it in the budget, when the
        steps are used up.
        """
        if not tree.places.of:
            return _with_first((), self._composer.choices(tree))
        tree.options = preferred(tree)
        if prod([len(tree.options[slot.kind]) for slot in self._plan.slots]) <= self._few:
            return self._sorted(tree)
        return self._searched(tree)

    def _sorted(self, tree: Tree) -> Composed | None:
        """Compose everything; what touches as many places stays in the order of the search."""
        place = tree.places.of.get
        by_counts: dict[Counts, list[Choice]] = {}
        by_touched: dict[int, list[Choice]] = {}
        for choice in self._composer.choices(tree):
            touched = 0
            for provider in choice if self._consuming is None else self._consuming(choice):
                touched |= place(provider, 0)
            found = by_touched.get(touched)
            if found is None:
                found = by_touched[touched] = by_counts.setdefault(tree.places.counts(touched), [])
            found.append(choice)
        if not by_counts:
            return None
        ascending = sorted(by_counts)
        return Composed(ascending[0], chain.from_iterable([by_counts[counts] for counts in ascending]))

    def _searched(self, tree: Tree) -> Composed | None:
        """Search for candidates of each count in turn, the smallest first; all searches share the steps of the tree."""
        slots = self._composer.slots_in_order(tree)
        regions = Regions(self._plan, tree, slots)
        steps = Steps(self._budget)
        searches = (
            (counts, self._composer.choices_under([Touches(slots, tree.places, counts, found)], tree, steps))
            for counts in product(*[range(least, most + 1) for least, most in regions.bounds])
            if (found := regions.touching(counts)) != []
        )
        for counts, choices in searches:
            if composed := _with_first(counts, choices):
                return composed._replace(choices=chain(composed.choices, (c for _, more in searches for c in more)))
        return None


def _with_first(counts: Counts, choices: Iterator[Choice]) -> Composed | None:
    first = next(choices, None)
    return None if first is None else Composed(counts, chain((first,), choices))


def _at(indexes: Sequence[int], choice: Choice) -> Iterable[int]:
    return [choice[index] for index in indexes]


def preferred(tree: Tree) -> list[list[int]]:
    """Return the options of a tree for each kind in the order of their fit: those first where least is left.

    What is left is how many times what is asked still fits, summed over the whole request, on the options in the same
    places and inside of them: all slots prefer the same NUMA node. An option that lies in no place stands for itself.
    Equals come by id.
    """
    if all([len(options) == 1 for options in tree.options]):
        return tree.options
    place, room_for = tree.places.of.get, tree.room_for
    # Sets of places are positive; the ids of options that lie in none are made negative.
    cells = [[place(provider) or -provider for provider in options] for options in tree.options]
    left: dict[int, float] = {}
    for kind, row in enumerate(cells):
        for cell, provider in zip(row, tree.options[kind], strict=True):
            left[cell] = left.get(cell, 0.0) + room_for[kind, provider]
    if len(left) == 1:
        return tree.options
    are_nested = sum(map(bool, tree.places.levels)) > 1
    inside = {cell: _inside(cell, left) if are_nested and cell > 0 else left[cell] for cell in left}
    return [
        [provider for _left, provider in sorted(zip([inside[cell] for cell in row], options, strict=True))]
        if len(options) > 1
        else options
        for row, options in zip(cells, tree.options, strict=True)
    ]


def _inside(place: int, left: Mapping[int, float]) -> float:
    """Return what is left in a place and in those inside it."""
    inside = 0.0
    for other, more in left.items():
        if other > 0 and other & place == place:
            inside += more
    return inside

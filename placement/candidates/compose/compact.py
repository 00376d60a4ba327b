"""The order of the candidates of one tree: the most compact first, then the best fit.

The fewer places a candidate touches at the outermost level, then at the next, the earlier it comes. Ties are broken
slot by slot, by the order of the tree's options: those in the place with least left come first. If nothing lies in a
place, candidates come in search order.

Few combinations, or a moderate number if all are wanted, are composed and sorted. Otherwise the search runs once for
each vector of counts, in ascending order, and finds only the candidates that touch exactly that many places: the first
one it finds is the best. Trees of the same canonical form, places included, are composed once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate, chain, compress, islice, product, repeat
from math import prod
from operator import or_
from typing import NamedTuple

from placement.allocators.ranking_profile import Counts
from placement.candidates.compose.constraints import Constraint
from placement.candidates.compose.slots import MAX_REMEMBERED, ChoicesOfForm, Memo, RequestBudget, SlotComposer
from placement.domain.search_plan import Choice, Plan, Slot
from placement.domain.tree import Places, Tree


class Composed(NamedTuple):
    """The candidates of one tree, best first, and how many places of each level the first one touches."""

    counts: Counts
    choices: Iterator[Choice]


FEW_COMBINATIONS = 100
"""Composing and sorting up to this many combinations is faster than searching them in order."""

MAX_SORTED = 100_000
"""How many combinations one request may compose and sort: an answer has room for few more candidates."""


class CompactFirst:
    """Composes the candidates of trees, the most compact first.

    If it ``is_exhaustive``, every candidate is taken, so that finding the best ones first gains nothing. In any case up
    to a ``few`` combinations of a tree are composed and sorted.
    """

    def __init__(self, plan: Plan, budget: RequestBudget, *, is_exhaustive: bool, few: int = FEW_COMBINATIONS) -> None:
        self._plan = plan
        self._budget = budget
        # The ordered search has as many steps of its own, to leave all to the plain search it may fall back on.
        self._for_order = RequestBudget(per_tree=budget.per_tree, per_request=budget.remaining)
        self._few = few
        self._composer = SlotComposer(plan, budget)
        self._left_to_sort = MAX_SORTED if is_exhaustive else 0
        self._consuming = [bool(slot.resources) for slot in plan.slots]
        self._memo: Memo[tuple[Counts, ChoicesOfForm] | None] = Memo()
        """By form, the counts of the first candidate, and all of them."""

    def composed_in(self, tree: Tree) -> Composed | None:
        """Return the choices that serve the plan in a tree, in order; None if there are none.

        Stop early, and mark the budget as hit, once the steps are used up.
        """
        if not tree.places.masks:
            return _with_first((), self._composer.choices(tree))
        if self._composer.lacks_traits(tree):
            return None
        form, rows = self._composer.form(tree, with_places=True), self._composer.rows(tree)
        if form in self._memo:
            of_form = self._memo[form]
        elif (combinations := prod(map(len, rows))) <= max(self._few, self._left_to_sort):
            self._left_to_sort -= combinations if combinations > self._few else 0
            counts, in_order = self._sorted(tree)
            if len(in_order) <= MAX_REMEMBERED and not self._budget.was_hit:
                choices = ChoicesOfForm(in_order, rows, self._budget)
                self._memo.remember(form, (counts, choices) if in_order else None)
            return Composed(counts, iter(in_order)) if in_order else None
        else:
            # Lazily: of most trees only the counts of the best candidate are asked for.
            composed = self._searched(tree)
            if self._for_order.was_hit or self._budget.was_hit:
                return composed
            of_form = composed and (composed.counts, ChoicesOfForm(composed.choices, rows, self._budget))
            self._memo.remember(form, of_form)
        if of_form is None:
            return None
        counts, choices = of_form
        return Composed(counts, choices.in_tree(rows, lambda: self._later(tree)))

    def _sorted(self, tree: Tree) -> tuple[Counts, list[Choice]]:
        """Return the least counts of places, and all choices sorted by counts, equal ones in search order."""
        choices, places = list(self._composer.choices(tree)), tree.places
        touched = self._touched(tree, choices)
        counts_of = {places_touched: places.counts(places_touched) for places_touched in {*touched}}
        in_order = sorted(range(len(choices)), key=[counts_of[mask] for mask in touched].__getitem__)
        return counts_of[touched[in_order[0]]] if in_order else (), [choices[number] for number in in_order]

    def _later(self, tree: Tree) -> Iterator[Choice]:
        """Search once choices are pulled. There may be none after all, if the steps are used up by then."""
        if composed := self._searched(tree):
            yield from composed.choices

    def _touched(self, tree: Tree, choices: Sequence[Choice]) -> tuple[int, ...]:
        """Return for each choice the places that it takes resources from."""
        touched: Iterable[int] = repeat(0, len(choices))
        # Slot by slot for all choices at once: no Python loop over choices.
        for column in compress(zip(*choices, strict=True), self._consuming):
            touched = map(or_, touched, map(tree.places.masks.get, column, repeat(0)))
        return tuple(touched)

    def _searched(self, tree: Tree) -> Composed | None:
        """Search for each vector of counts in turn, the least first, with the steps of one tree in all."""
        prepared = self._composer.prepared(tree)
        if prepared is None:
            return None
        steps, slots = self._for_order.of_tree(), prepared.order.slots
        searches = (
            (counts, prepared.choices(steps, [_Touches(slots, tree.places, counts)]))
            for counts in _possible_counts(self._plan, tree)
        )

        def noting_the_end(choices: Iterator[Choice]) -> Iterator[Choice]:
            yield from choices
            if steps.was_hit:
                self._budget.was_hit = True

        for counts, choices in searches:
            if composed := _with_first(counts, choices):
                in_order = chain(composed.choices, (choice for _counts, more in searches for choice in more))
                return Composed(counts, noting_the_end(in_order))
        return self._unsorted(tree) if steps.was_hit else None

    def _unsorted(self, tree: Tree) -> Composed | None:
        """Search without an order: steps wasted on ordering must not hide a candidate."""
        tree.options = [sorted(options) for options in tree.options]
        composed = _with_first((), self._composer.choices(tree))
        if composed is None:
            return None
        first, further = next(composed.choices), composed.choices
        (touched,) = self._touched(tree, [first])
        self._budget.was_hit = True
        return Composed(tree.places.counts(touched), chain((first,), further))


def _with_first(counts: Counts, choices: Iterator[Choice]) -> Composed | None:
    first = next(choices, None)
    return None if first is None else Composed(counts, chain((first,), choices))


def _possible_counts(plan: Plan, tree: Tree) -> Iterator[Counts]:
    """Yield how many places of each level candidates may touch, in ascending order.

    Sums tell the fewest: three units left in each of two places are too little for four slots of two.
    """
    consuming = [slot for slot in plan.slots if slot.resources]
    loads, bounds = [*_loads(plan, tree, consuming)], []
    reached = reduce(or_, map(tree.places.masks.get, _providers(tree, consuming), repeat(0)), 0)
    for places in tree.places.levels:
        highest = max(1, min(len(consuming), (reached & places).bit_count()))
        bounds.append(range(max([_fewest(total, rooms, places) for total, rooms in loads], default=1), highest + 1))
    return product(*bounds)


def _loads(plan: Plan, tree: Tree, consuming: Sequence[Slot]) -> Iterator[tuple[float, Mapping[int, float]]]:
    """Yield what adds up: the total asked for, and the room for it by the places that it is in."""
    if plan.request.isolate:
        granular = [slot for slot in consuming if slot.is_granular]
        yield len(granular), _by_mask(tree, dict.fromkeys(_providers(tree, granular), 1.0))
    for name in plan.contended:
        asking = [(dict(slot.resources)[name], slot) for slot in consuming if name in dict(slot.resources)]
        amounts = sorted({amount for amount, _slot in asking})
        rooms = {provider: tree.room[provider, name] for provider in _providers(tree, [slot for _, slot in asking])}
        if len(amounts) > 1:
            yield sum([amount for amount, _slot in asking]), _by_mask(tree, rooms)
        # Three units left at each provider are of little use to slots of two.
        for least in amounts:
            larger = [slot for amount, slot in asking if amount >= least]
            times = {provider: rooms[provider] // least for provider in _providers(tree, larger)}
            yield len(larger), _by_mask(tree, times)


def _providers(tree: Tree, slots: Sequence[Slot]) -> set[int]:
    return {provider for demand in {slot.demand for slot in slots} for provider in tree.options[demand]}


def _by_mask(tree: Tree, rooms: Mapping[int, float]) -> dict[int, float]:
    sums: dict[int, float] = defaultdict(float)
    for provider, room in rooms.items():
        sums[tree.places.masks.get(provider, 0)] += room
    return sums


def _fewest(demand: float, rooms: Mapping[int, float], places: int) -> int:
    """Return the least number of places of a level that have room for a demand."""
    by_place: dict[int, float] = defaultdict(float)
    for mask, room in rooms.items():
        by_place[mask & places] += room
    outside = by_place.pop(0, 0.0)
    before = accumulate(sorted(by_place.values(), reverse=True), initial=outside)
    return max(1, sum([room < demand for room in islice(before, len(by_place))]))


class _Touches(Constraint):
    """The constraint that exactly this many places of each level are touched; slots come in search order."""

    def __init__(self, slots: Sequence[Slot], places: Places, counts: Counts) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if slot.resources)
        self._after = [sum(later > depth for later in self.depths) for depth in range(len(slots))]
        self._places = places
        self._counts = counts
        self._touched = [0]
        self._missing: dict[int, int | None] = {}

    def take(self, depth: int, provider: int) -> bool:
        touched = self._touched[-1] | self._places.masks.get(provider, 0)
        if touched not in self._missing:
            # How many places the level that lacks most is missing; None if too many are touched.
            lacks = [target - count for target, count in zip(self._counts, self._places.counts(touched), strict=True)]
            self._missing[touched] = None if min(lacks) < 0 else max(lacks)
        missing = self._missing[touched]
        if missing is None or missing > self._after[depth]:
            return False
        self._touched.append(touched)
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        self._touched.pop()

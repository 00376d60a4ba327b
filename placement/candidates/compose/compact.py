"""The order of the candidates of one tree: the most compact first, then the best fit.

The fewer places a candidate touches at the outermost level, then at the next, the earlier it comes. Ties are broken
slot by slot, by the order of the tree's options: those in the place with least left come first. If nothing lies in a
place, candidates come in search order.

Few combinations, or a moderate number if all are wanted, are composed and sorted. Otherwise the search runs once for
each vector of counts, in ascending order, and finds only the candidates that touch exactly that many places: the first
one it finds is the best. Trees of the same canonical form, places included, are composed once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, product, repeat
from math import prod
from operator import call, itemgetter, or_
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.ranking_profile import Counts
from placement.candidates.canonical import CanonicalForm, Memo, Sketch, with_places
from placement.candidates.compose.constraints import Constraint
from placement.candidates.compose.slots import ChoicesOfForm, RequestBudget, SlotComposer
from placement.domain.places import Places
from placement.domain.search_plan import Choice, Plan, Slot
from placement.domain.tree import Tree


class Composed(NamedTuple):
    """The candidates of one tree, best first.

    ``counts`` tells how many places of each level the first one touches. It is empty if levels do not matter.
    """

    counts: Counts
    choices: Iterator[Choice]


class _FormChoices(NamedTuple):
    """What is known about all trees of one form.

    Args:
        counts: the least counts of places, those of the first candidate; None if there is no candidate.
        readers: for each candidate, in order, a function that reads it off the providers of a sketch; None if there are
            too many candidates.
        choices: if so, the candidates as far as they have been searched for.
    """

    counts: Counts | None
    readers: list[Callable[[Choice], Choice]] | None
    choices: ChoicesOfForm | None = None

    def read_off(self, providers: tuple[int, ...]) -> Composed | None:
        """Return the candidates of a tree with these providers."""
        if self.counts is None or not self.readers:
            return None
        return Composed(self.counts, map(call, self.readers, repeat(providers)))


_NOT_COMPOSED = _FormChoices(None, None)

FEW_COMBINATIONS = 100
"""Composing and sorting up to this many combinations is faster than searching them in order."""

MAX_SORTED = 100_000
"""How many combinations one request may compose and sort: an answer has room for few more candidates."""


class CompactFirst:
    """Composes the candidates of trees, the most compact first.

    Args:
        plan: what is asked for.
        budget: limits the steps of the search.
        all_wanted: whether every candidate will be taken, so that finding the best ones first gains nothing.
        few: up to this many combinations of a tree are composed and sorted in any case.
    """

    def __init__(self, plan: Plan, budget: RequestBudget, *, all_wanted: bool, few: int = FEW_COMBINATIONS) -> None:
        self._plan = plan
        self._budget = budget
        # The ordered search has as many steps of its own, to leave all to the plain search it may fall back on.
        self._for_order = RequestBudget(per_tree=budget.per_tree, per_request=budget.remaining)
        self._few = few
        self._composer = SlotComposer(plan, budget)
        self._sketcher = self._composer.sketcher
        self._left_to_sort = MAX_SORTED if all_wanted else 0
        consuming = [bool(slot.resources) for slot in plan.slots]
        self._consuming = None if all(consuming) else consuming
        self._memo: Memo[_FormChoices] = Memo()

    def composed_in(self, tree: Tree) -> Composed | None:
        """Return the choices that serve the plan in a tree, in order; None if there are none.

        Stop early, and mark the budget as hit, once the steps are used up.
        """
        if not tree.places.masks:
            return _with_first((), self._composer.choices(tree))
        if self._composer.lacks_traits(tree):
            return None
        sketch = self._sketcher.sketch(tree)
        form = with_places(sketch, tree.places)
        of_form = self._memo.get(form, _NOT_COMPOSED)
        # A step for each candidate; if too few are left, the search uses them up.
        steps = None if of_form.readers is None else len(of_form.readers)
        if steps is not None and steps <= self._budget.remaining and self._budget.take(steps):
            return of_form.read_off(sketch[1])
        if self._combinations(tree) <= self._few and not self._memo.is_full:
            return self._first_of_form(tree, sketch, form)
        if not self._may_sort(tree):
            return self._searched_lazily(tree, sketch, form)
        counts, in_order = self._in_order(list(self._composer.choices(tree)), tree.places.masks, tree.places)
        return Composed(counts, iter(in_order)) if in_order else None

    def _combinations(self, tree: Tree) -> int:
        return prod([len(tree.options[slot.demand]) for slot in self._plan.slots])

    def _may_sort(self, tree: Tree) -> bool:
        """Charge a tree's combinations to those that may be sorted; tell whether enough were left."""
        combinations = self._combinations(tree)
        if combinations <= self._few:
            return True
        if combinations > self._left_to_sort:
            return False
        self._left_to_sort -= combinations
        return True

    def _first_of_form(self, tree: Tree, sketch: Sketch, form: CanonicalForm) -> Composed | None:
        """Compose everything in the numbers of a sketch, and memoise it for equivalent trees."""
        choices, (_form, providers) = self._composer.numbered_choices(tree, sketch), sketch
        masks = {number: tree.places.masks.get(provider, 0) for number, provider in enumerate(providers)}
        counts, in_order = self._in_order(choices, masks, tree.places)
        of_form = _FormChoices(counts, list(map(_reader, in_order)))
        if not self._budget.was_hit:
            self._memo.remember(form, of_form)
        return of_form.read_off(providers)

    def _in_order(
        self, choices: Sequence[Choice], masks: Mapping[int, int], places: Places
    ) -> tuple[Counts, list[Choice]]:
        """Return the least counts of places, and the choices sorted by counts; equals stay in search order."""
        touched = self._touched(masks, choices)
        counts_of = {places_touched: places.counts(places_touched) for places_touched in set(touched)}
        counts = [counts_of[places_touched] for places_touched in touched]
        order = sorted(range(len(counts)), key=counts.__getitem__)
        return counts[order[0]] if order else (), [choices[index] for index in order]

    def _touched(self, masks: Mapping[int, int], choices: Sequence[Choice]) -> tuple[int, ...]:
        """Return for each choice the places that it takes resources from."""
        touched: Iterable[int] = repeat(0, len(choices))
        # Slot by slot for all choices at once: no Python loop over choices.
        columns: Iterable[Choice] = zip(*choices, strict=True)
        for column in columns if self._consuming is None else compress(columns, self._consuming):
            touched = map(or_, touched, map(masks.get, column, repeat(0)))
        return tuple(touched)

    def _searched_lazily(self, tree: Tree, sketch: Sketch, form: CanonicalForm) -> Composed | None:
        """Search a tree, or, if one of its form was searched before, only for what has not been found there.

        Lazily, because all that most trees are asked for is the counts of their best candidate.
        """
        _form, providers = sketch
        of_form = self._memo.get(form)
        if of_form is None:
            composed = self._searched(tree)
            if self._for_order.was_hit or self._budget.was_hit:
                return composed
            choices = None if composed is None else ChoicesOfForm(composed.choices, providers, self._budget)
            of_form = _FormChoices(composed and composed.counts, None, choices)
            self._memo.remember(form, of_form)
        if of_form.counts is None or of_form.choices is None:
            return None
        return Composed(of_form.counts, of_form.choices.in_tree(providers, lambda: self._later(tree)))

    def _later(self, tree: Tree) -> Iterator[Choice]:
        """Search once choices are pulled. There may be none after all, if the steps are used up by then."""
        if composed := self._searched(tree):
            yield from composed.choices

    def _searched(self, tree: Tree) -> Composed | None:
        """Search for the candidates of each vector of counts in turn, the least first.

        All searches together have the steps of one tree.
        """
        prepared = self._composer.prepared(tree)
        if prepared is None:
            return None
        steps, slots = self._for_order.of_tree(), prepared.order.slots
        searches = (
            (counts, prepared.choices(steps, [Touches(slots, tree.places, counts)]))
            for counts in possible_counts(self._plan, tree)
        )
        for counts, choices in searches:
            if composed := _with_first(counts, choices):
                in_order = chain(composed.choices, (choice for _counts, more in searches for choice in more))
                return Composed(counts, self._noting_the_end(in_order, steps))
        return self._unsorted(tree) if steps.was_hit else None

    def _noting_the_end(self, choices: Iterator[Choice], steps: Budget) -> Iterator[Choice]:
        """Yield choices; once they have ended, mark the budget of the request as hit if their steps were."""
        yield from choices
        if steps.was_hit:
            self._budget.was_hit = True

    def _unsorted(self, tree: Tree) -> Composed | None:
        """Search without an order: steps wasted on ordering must not hide a candidate."""
        tree.options = [sorted(options) for options in tree.options]
        composed = _with_first((), self._composer.choices(tree))
        if composed is None:
            return None
        first, further = next(composed.choices), composed.choices
        (touched,) = self._touched(tree.places.masks, [first])
        self._budget.was_hit = True
        return Composed(tree.places.counts(touched), chain((first,), further))


def _with_first(counts: Counts, choices: Iterator[Choice]) -> Composed | None:
    first = next(choices, None)
    return None if first is None else Composed(counts, chain((first,), choices))


def _reader(choice: Choice) -> Callable[[Choice], Choice]:
    """Return a function that reads a choice of numbers off the providers they stand for."""
    if len(choice) > 1:
        return itemgetter(*choice)
    (number,) = choice
    return itemgetter(slice(number, number + 1))  # A slice, so that the result is a tuple, too.


def possible_counts(plan: Plan, tree: Tree) -> Iterator[Counts]:
    """Yield how many places of each level candidates may touch, in ascending order.

    Sums tell the fewest: three units left in each of two places are too little for four slots of two.
    """
    consuming = [slot for slot in plan.slots if slot.resources]
    loads = [*_loads(plan, tree, consuming)]
    reached = 0
    for provider in _providers(tree, consuming):
        reached |= tree.places.masks.get(provider, 0)
    bounds = []
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
    missing, count = demand - by_place.pop(0, 0), 0
    for room in sorted(by_place.values(), reverse=True):
        if missing <= 0:
            break
        missing, count = missing - room, count + 1
    return max(1, count)


class Touches(Constraint):
    """The constraint that exactly this many places of each level are touched.

    Args:
        slots: in search order.
        places: where the providers of the tree lie.
        counts: how many places of each level.
    """

    def __init__(self, slots: Sequence[Slot], places: Places, counts: Counts) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if slot.resources)
        self._after = [sum(later > depth for later in self.depths) for depth in range(len(slots))]
        self._places = places
        self._counts = counts
        self._touched = [0]
        self._missing: dict[int, int | None] = {}

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider if no level has too many places touched, and the slots to come can touch the rest."""
        touched = self._touched[-1] | self._places.masks.get(provider, 0)
        if touched not in self._missing:
            self._missing[touched] = self._missing_from(touched)
        missing = self._missing[touched]
        if missing is None or missing > self._after[depth]:
            return False
        self._touched.append(touched)
        return True

    def _missing_from(self, touched: int) -> int | None:
        """Return how many places the level that lacks most is missing; None if too many are touched."""
        lacks = [target - count for target, count in zip(self._counts, self._places.counts(touched), strict=True)]
        return None if min(lacks) < 0 else max(lacks)

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        """Undo the last choice."""
        self._touched.pop()

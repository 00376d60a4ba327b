"""The order of the candidates of one tree: the most compact first, then the best fit.

The fewer places a candidate touches at the outermost level, then at the next, the earlier it comes. Ties are broken
slot by slot, by the order of the tree's options: those in the place with least left come first. If nothing lies in a
place, candidates come in search order.

Few combinations, or a moderate number if all are wanted, are composed and sorted. Otherwise the search runs once for
each vector of counts, in ascending order, and finds only the candidates that touch exactly that many places: the first
one it finds is the best. Trees of the same canonical form, places included, are composed once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, repeat
from math import prod
from operator import call, itemgetter, or_
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.compactness import Counts
from placement.candidates.budget import RequestBudget
from placement.candidates.canonical import CanonicalForm, Memo, Sketch, with_places
from placement.candidates.compose.composed import ChoicesOfForm, Composed
from placement.candidates.compose.constraints import Constraint
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.compose.touched_places import Touches, possible_counts
from placement.domain.places import Places
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree


class _Known(NamedTuple):
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

    def read_off(self, providers: tuple[int, ...]) -> Composed[Choice] | None:
        """Return the candidates of a tree with these providers."""
        if self.counts is None or not self.readers:
            return None
        return Composed(self.counts, map(call, self.readers, repeat(providers)))


_UNKNOWN = _Known(None, None)

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
        self._for_order = RequestBudget(per_tree=budget.per_tree, per_request=budget.left)
        self._few = few
        self._composer = SlotComposer(plan, budget)
        self._sketcher = self._composer.sketcher
        self._left_to_sort = MAX_SORTED if all_wanted else 0
        consuming = [bool(slot.resources) for slot in plan.slots]
        self._consuming = None if all(consuming) else consuming
        self._is_unconstrained = plan.is_unconstrained
        self._memo: Memo[_Known] = Memo()

    def composed_in(self, tree: Tree) -> Composed[Choice] | None:
        """Return the choices that serve the plan in a tree, in order; None if there are none.

        Stop early, and mark the budget as hit, once the steps are used up.
        """
        if not tree.places.of:
            return _with_first((), self._composer.choices(tree))
        if self._composer.lacks_traits(tree):
            return None
        sketch = self._sketcher.sketch(tree)
        form = with_places(sketch, tree.places)
        known = self._memo.get(form, _UNKNOWN)
        if known.readers is not None and self._may_read_off(known.readers):
            return known.read_off(sketch[1])
        if self._combinations(tree) <= self._few and not self._memo.is_full:
            return self._first_of_form(tree, sketch, form)
        return self._sorted(tree) if self._may_sort(tree) else self._searched_lazily(tree, sketch, form)

    def composed(self, trees: Sequence[Tree]) -> list[Composed[Choice] | None]:
        """Return for each of several trees what ``composed_in`` does.

        Each step is done for all trees before the next one, so that what it needs stays in the processor's cache.
        """
        if not self._is_unconstrained or len(trees) == 1 or not any(tree.places.of for tree in trees):
            return [self.composed_in(tree) for tree in trees]
        sketches = list(self._sketcher.sketches(trees))
        forms = [with_places(sketch, tree.places) for tree, sketch in zip(trees, sketches, strict=True)]
        found: list[Composed[Choice] | None] = []
        left_to_read = MAX_SORTED  # Read eagerly for the same reason, as far as memory allows.
        for tree, (_form, providers), form in zip(trees, sketches, forms, strict=True):
            counts, readers, _choices = self._memo.get(form, _UNKNOWN)
            if readers and counts is not None and self._may_read_off(readers):
                choices = map(call, readers, repeat(providers))
                left_to_read -= len(readers)
                found.append(Composed(counts, choices if left_to_read < 0 else iter([*choices])))
            else:
                found.append(self.composed_in(tree))
        return found

    def _may_read_off(self, readers: Sequence[object]) -> bool:
        """Take a step for each known candidate; if too few are left, leave it to the search to use them up."""
        return len(readers) <= self._budget.left and self._budget.take(len(readers))

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

    def _first_of_form(self, tree: Tree, sketch: Sketch, form: CanonicalForm) -> Composed[Choice] | None:
        """Compose everything in the numbers of a sketch, and memoise it for equivalent trees."""
        choices, (_form, providers) = self._composer.numbered_choices(tree, sketch), sketch
        masks = {number: tree.places.of.get(provider, 0) for number, provider in enumerate(providers)}
        counts, in_order = self._in_order(choices, masks, tree.places)
        known = _Known(counts, list(map(_reader, in_order)))
        if not self._budget.was_hit:
            self._memo.remember(form, known)
        return known.read_off(providers)

    def _sorted(self, tree: Tree) -> Composed[Choice] | None:
        """Compose everything and sort it by counts; equals stay in search order."""
        counts, in_order = self._in_order(list(self._composer.choices(tree)), tree.places.of, tree.places)
        return Composed(counts, iter(in_order)) if in_order else None

    def _in_order(
        self, choices: Sequence[Choice], masks: Mapping[int, int], places: Places
    ) -> tuple[Counts, list[Choice]]:
        """Return the least counts of places, and the choices sorted by counts; equals stay in search order.

        Args:
            choices: the choices, of providers or of numbers.
            masks: the places that each provider, or number, lies in.
            places: the places of the tree.
        """
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

    def _searched_lazily(self, tree: Tree, sketch: Sketch, form: CanonicalForm) -> Composed[Choice] | None:
        """Search a tree, or, if one of its form was searched before, only for what has not been found there.

        Lazily, because all that most trees are asked for is the counts of their best candidate.
        """
        _form, providers = sketch
        known = self._memo.get(form)
        if known is None:
            composed = self._searched(tree)
            if self._for_order.was_hit or self._budget.was_hit:
                return composed
            choices = None if composed is None else ChoicesOfForm(composed.ways, providers, self._budget)
            known = _Known(composed and composed.counts, None, choices)
            self._memo.remember(form, known)
        if known.counts is None or known.choices is None:
            return None
        return Composed(known.counts, known.choices.in_tree(providers, lambda: self._later(tree)))

    def _later(self, tree: Tree) -> Iterator[Choice]:
        """Search once choices are pulled. There may be none after all, if the steps are used up by then."""
        if composed := self._searched(tree):
            yield from composed.ways

    def _searched(self, tree: Tree) -> Composed[Choice] | None:
        """Search for the candidates of each vector of counts in turn, the least first."""
        return self._first_found(tree, self._touching(tree))

    def _touching(self, tree: Tree) -> Iterator[tuple[Counts, Sequence[Constraint]]]:
        """Yield counts with the constraint for candidates that touch that many places."""
        slots = self._composer.slots_in_order(tree)
        for counts in possible_counts(self._plan, tree):
            yield counts, [Touches(slots, tree.places, counts)]

    def _first_found(
        self, tree: Tree, conditions: Iterable[tuple[Counts, Sequence[Constraint]]]
    ) -> Composed[Choice] | None:
        """Search under each of some conditions in turn; all searches together have the steps of one tree."""
        prepared = self._composer.prepared(tree)
        if prepared is None:
            return None
        steps = self._for_order.of_tree()
        searches = ((counts, prepared.choices(steps, constraints)) for counts, constraints in conditions)
        for counts, choices in searches:
            if composed := _with_first(counts, choices):
                in_order = chain(composed.ways, (choice for _counts, more in searches for choice in more))
                return Composed(counts, self._noting_the_end(in_order, steps))
        return self._unsorted(tree) if steps.was_hit else None

    def _noting_the_end(self, choices: Iterator[Choice], steps: Budget) -> Iterator[Choice]:
        """Yield choices; once they have ended, mark the budget of the request as hit if their steps were."""
        yield from choices
        if steps.was_hit:
            self._budget.was_hit = True

    def _unsorted(self, tree: Tree) -> Composed[Choice] | None:
        """Search without an order: steps wasted on ordering must not hide a candidate."""
        tree.options = [sorted(options) for options in tree.options]
        composed = _with_first((), self._composer.choices(tree))
        if composed is None:
            return None
        first, others = next(composed.ways), composed.ways
        (touched,) = self._touched(tree.places.of, [first])
        self._budget.was_hit = True
        return Composed(tree.places.counts(touched), chain((first,), others))


def _with_first(counts: Counts, choices: Iterator[Choice]) -> Composed[Choice] | None:
    first = next(choices, None)
    return None if first is None else Composed(counts, chain((first,), choices))


def _reader(choice: Choice) -> Callable[[Choice], Choice]:
    """Return a function that reads a choice of numbers off the providers they stand for."""
    if len(choice) > 1:
        return itemgetter(*choice)
    (number,) = choice
    return itemgetter(slice(number, number + 1))  # A slice, so that the result is a tuple, too.

"""Trees that are alike: what was composed in one of them is read off for all others.

A cloud has thousands of hosts of a few models. Two trees have one *canonical form* if the search cannot tell them apart
but for the ids of their providers; then their candidates differ in these alone, and come in the same order.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from placement.candidates.budget import RequestBudget
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

CanonicalForm = tuple[object, ...]

MOST_KEPT = 1000
"""Trees with more candidates are composed each for itself: what is kept must be small beside an answer."""


Sketch = tuple[CanonicalForm, tuple[int, ...]]
"""A tree drawn without ids: its canonical form, and the providers that the numbers in it stand for."""


class ChoiceMemo:
    """Draws the trees of one request, and keeps the candidates of each form that was composed to the end."""

    def __init__(self, plan: Plan, budget: RequestBudget) -> None:
        self._budget = budget
        self._is_unconstrained = plan.is_unconstrained
        self._with_traits = bool(plan.trait_sets)
        self._with_ancestors = bool(plan.request.same_subtree)
        asked: Counter[str] = Counter()
        for slot in plan.slots:
            asked.update(dict(slot.resources))
        # More room than all slots ask for together is as good as just enough.
        self._contended = [(name, asked[name]) for name in plan.contended]
        self._known: dict[CanonicalForm, list[Choice]] = {}

    def sketch(self, tree: Tree) -> Sketch:
        """Draw a tree with providers of its own alone; they are numbered as they appear.

        Where any combination of options is a choice, it does not matter whether two of them are one provider.
        """
        if self._is_unconstrained:
            return tuple(map(len, tree.options)), tuple(chain.from_iterable(tree.options))
        numbers: dict[int, int] = {}
        number = numbers.setdefault
        drawn: list[object] = [tuple([number(provider, len(numbers)) for provider in row]) for row in tree.options]
        providers = tuple(numbers)
        if self._with_traits:
            drawn += [tree.met.get(provider, 0) for provider in providers]
        if self._with_ancestors:
            drawn += [_next_above(provider, tree.parents, numbers) for provider in providers]
        for name, enough in self._contended:
            drawn += [min(tree.room.get((provider, name), 0), enough) for provider in providers]
        return tuple(drawn), providers

    def sketches(self, trees: Sequence[Tree]) -> Iterable[Sketch]:
        """Draw many trees."""
        if not self._is_unconstrained:
            return map(self.sketch, trees)
        options = [tree.options for tree in trees]
        providers = [tuple(chain.from_iterable(of_tree)) for of_tree in options]
        return zip([tuple([len(of_demand) for of_demand in of_tree]) for of_tree in options], providers, strict=True)

    def choices(self, sketch: Sketch) -> Iterator[Choice] | None:
        """Return the candidates of a tree; None if no tree of its form was composed to the end.

        Each costs a step of the request: what it takes to write them all down is bounded, too.
        """
        form, providers = sketch
        composed = self._known.get(form)
        return None if composed is None else self._read_off(composed, providers)

    def _read_off(self, composed: Iterable[Choice], providers: Sequence[int]) -> Iterator[Choice]:
        budget = self._budget
        for choice in composed:
            if not budget.take():
                return
            yield tuple([providers[number] for number in choice])

    def kept(self, choices: Iterable[Choice], sketch: Sketch) -> Iterator[Choice]:
        """Yield the candidates of a tree as they are composed; keep them if that comes to its end."""
        found: list[Choice] = []
        for choice in choices:
            if len(found) <= MOST_KEPT:
                found.append(choice)
            yield choice
        if len(found) <= MOST_KEPT and not self._budget.was_hit:
            form, providers = sketch
            self._known[form] = numbered(found, providers)


def numbered(choices: Iterable[Choice], providers: Sequence[int]) -> list[Choice]:
    """Return choices with the numbers of a sketch for the providers in it, which are all different."""
    number = {provider: number for number, provider in enumerate(providers)}
    return [tuple([number[provider] for provider in choice]) for choice in choices]


def _next_above(provider: int, parents: Mapping[int, int | None], numbers: Mapping[int, int]) -> int | None:
    """Return the number of the nearest ancestor that has one: whatever ties providers together goes over these."""
    # Not by ``upwards``: it is asked for each provider of each tree, where a generator shows in the time of requests.
    above = parents.get(provider)
    while above is not None and above not in numbers:
        above = parents.get(above)
    return None if above is None else numbers[above]

"""Trees that are alike: what was worked out for one of them is read off for all others.

A cloud has thousands of hosts of a few models. Two trees have one *canonical form* if the search cannot tell them apart
but for the ids of their providers; then their candidates differ in these alone, and come in the same order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from placement.domain.places import Places
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

CanonicalForm = tuple[object, ...]

Sketch = tuple[CanonicalForm, tuple[int, ...]]
"""A tree drawn without ids: its canonical form, and the providers that the numbers in it stand for."""

Found = TypeVar("Found")


class Memo(dict[CanonicalForm, Found]):
    """What was found in trees, by their canonical form, within one request; only what is certain goes in.

    Args:
        most: how many forms are remembered. A request that meets more of them has little to gain from the others.
    """

    def __init__(self, most: int = 1000) -> None:
        super().__init__()
        self._most = most

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another form."""
        return len(self) >= self._most

    def remember(self, form: CanonicalForm, found: Found) -> None:
        """Remember what was found, while there is room."""
        if not self.is_full:
            self[form] = found


class Sketcher:
    """Draws the trees of one plan. Whatever constrains a choice has to be in the drawing."""

    def __init__(self, plan: Plan) -> None:
        self._is_unconstrained = plan.is_unconstrained
        self._with_traits = bool(plan.trait_sets)
        self._with_ancestors = bool(plan.request.same_subtree)
        self._with_homes = not plan.request.combines_nested
        asked: Counter[str] = Counter()
        for slot in plan.slots:
            asked.update(dict(slot.resources))
        # More room than all slots ask for together is as good as just enough.
        self._contended = [(name, asked[name]) for name in plan.contended]

    def sketch(self, tree: Tree) -> Sketch:
        """Draw a tree; its providers are numbered as they appear.

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
        if self._with_homes and tree.home:
            drawn += _homes(providers, tree)
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


def with_places(sketch: Sketch, places: Places) -> CanonicalForm:
    """Return the form of a tree whose places matter, too: those of each provider, and which of them are of a level."""
    drawn, providers = sketch
    return drawn, tuple([places.of.get(provider, 0) for provider in providers]), places.levels


def numbered(choices: Iterable[Choice], providers: Sequence[int]) -> list[Choice]:
    """Return choices with the numbers of a sketch for the providers in it, which are all different."""
    number = {provider: number for number, provider in enumerate(providers)}
    return [tuple([number[provider] for provider in choice]) for choice in choices]


def _homes(providers: Iterable[int], tree: Tree) -> list[int]:
    """Return for each provider a number for the tree that it is of."""
    homes: dict[int, int] = {}
    return [homes.setdefault(tree.home.get(provider, tree.root), len(homes)) for provider in providers]


def _next_above(provider: int, parents: Mapping[int, int | None], numbers: Mapping[int, int]) -> int | None:
    """Return the number of the nearest ancestor that has one: whatever ties providers together goes over these."""
    # Not by ``upwards``: it is asked for each provider of each tree, where a generator shows in the time of requests.
    above = parents.get(provider)
    while above is not None and above not in numbers:
        above = parents.get(above)
    return None if above is None else numbers[above]

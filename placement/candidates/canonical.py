"""Composes equivalent trees once: what was found in one of them is read off for the others.

A cloud has thousands of hosts of a few models. Two trees have the same *canonical form* if the search cannot tell them
apart but by the ids of their providers. Then their candidates differ in the ids alone, and come in the same order.

To compare trees, each is sketched with numbers instead of ids. A *sketch* has its form, and the providers that the
numbers stand for. If providers 7 and 9 can serve the only demand in one tree, and 21 and 25 in another, both have the
form ``((0, 1),)``. Of the choice ``(1,)``, found once, one tree reads off ``(9,)`` and the other ``(25,)``.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from placement.domain.places import Places
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

CanonicalForm = tuple[object, ...]

Sketch = tuple[CanonicalForm, tuple[int, ...]]
"""A tree without ids: its canonical form, and the provider that each number in it stands for."""

Result = TypeVar("Result")


UsefulRoom = Mapping[str, Mapping[float, float]]
"""For each contended class, the largest sum of amounts that fits into a room."""

MAX_SUMS = 10_000
"""How many sums of amounts to tell apart; beyond that, room is told apart to the unit."""


def useful_room(plan: Plan) -> UsefulRoom:
    """Return, for each contended class of a plan and any room, the largest sum of amounts that fits into it."""
    return {name: _RoundedDown(_sums(plan, name)) for name in plan.contended}


class _RoundedDown(dict[float, float]):
    """Numbers and the largest of some ascending sums that is no higher; the number itself if there are no sums.

    Computed on demand, because few numbers occur.
    """

    def __init__(self, sums: Sequence[int]) -> None:
        super().__init__()
        self._sums = sums

    def __missing__(self, number: float) -> float:
        at = bisect_right(self._sums, number) - 1
        rounded = self[number] = self._sums[max(0, at)] if self._sums else number
        return rounded


def _sums(plan: Plan, name: str) -> list[int]:
    """Return the sums that slots may take of a class from one provider, ascending; nothing if there are too many."""
    sums = {0}
    for slot in plan.slots:
        amount = dict(slot.resources).get(name, 0)
        sums |= {total + amount for total in sums}
        if len(sums) > MAX_SUMS:
            return []
    return sorted(sums)


class Memo(dict[Hashable, Result]):
    """Memoises results in trees, by canonical form, within one request.

    Args:
        limit: how many forms to remember. A request that meets more of them gains little from memoising the rest.
    """

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self._limit = limit

    @property
    def is_full(self) -> bool:
        """Whether there is no room left for another form."""
        return len(self) >= self._limit

    def remember(self, form: Hashable, result: Result) -> None:
        """Remember a result, if there is room."""
        if not self.is_full:
            self[form] = result


class Sketcher:
    """Sketches the trees of one plan. Everything that can constrain a choice must be part of the form."""

    def __init__(self, plan: Plan) -> None:
        self._is_unconstrained = plan.is_unconstrained
        self._with_traits = bool(plan.trait_sets)
        self._with_ancestors = bool(plan.request.same_subtree)
        self._with_roots = not plan.request.combines_nested
        self._useful = useful_room(plan)

    def sketch(self, tree: Tree) -> Sketch:
        """Sketch a tree, numbering its providers as they appear.

        Where any combination of options is a choice, only the number of options of each demand matters.
        """
        if self._is_unconstrained:
            return tuple(map(len, tree.options)), tuple(chain.from_iterable(tree.options))
        numbers: dict[int, int] = {}
        number = numbers.setdefault
        form: list[object] = [tuple([number(provider, len(numbers)) for provider in row]) for row in tree.options]
        providers = tuple(numbers)
        if self._with_traits:
            form += [tree.met.get(provider, 0) for provider in providers]
        if self._with_ancestors:
            form += [_next_above(provider, tree.parents, numbers) for provider in providers]
        if self._with_roots and tree.root_of:
            trees: dict[int, int] = {}
            roots = [tree.root_of.get(provider, tree.root) for provider in providers]
            form += [trees.setdefault(root, len(trees)) for root in roots]
        for name, useful in self._useful.items():
            form += [useful[tree.room.get((provider, name), 0)] for provider in providers]
        return tuple(form), providers


def with_places(sketch: Sketch, places: Places) -> CanonicalForm:
    """Return the form of a tree whose places matter, too: the places of each provider, and the places of each level."""
    form, providers = sketch
    return form, tuple([places.masks.get(provider, 0) for provider in providers]), places.levels


def numbered(choices: Iterable[Choice], providers: Sequence[int]) -> list[Choice]:
    """Return choices with providers replaced by their numbers in a sketch; no provider may be in it twice."""
    number = {provider: number for number, provider in enumerate(providers)}
    return [tuple([number[provider] for provider in choice]) for choice in choices]


def _next_above(provider: int, parents: Mapping[int, int | None], numbers: Mapping[int, int]) -> int | None:
    """Return the number of the nearest numbered ancestor: the only ancestors that can tie providers together."""
    # Not by ``upwards``: this runs for every provider of every tree, where the cost of a generator shows.
    above = parents.get(provider)
    while above is not None and above not in numbers:
        above = parents.get(above)
    return None if above is None else numbers[above]

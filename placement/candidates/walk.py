"""From trees to the list of candidates: in which order trees are visited, no duplicates, and where to stop."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import repeat

from placement.candidates.budget import RequestBudget
from placement.candidates.compose.slots import SlotComposer
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

Candidate = tuple[int, Choice]
"""A way to serve a request: the root of the tree it was found in, and the provider of each slot of the plan.

A plain tuple, because there may be tens of thousands of them.
"""


def candidates_in(
    plan: Plan, trees: Iterable[Tree], budget: RequestBudget, *, breadth_first: bool = False
) -> Iterator[Candidate]:
    """Yield the candidates of all trees.

    Depth first gives all candidates of a tree before the next; breadth first gives each tree's first one before any
    tree's second. ``trees`` is read only as far as candidates are asked for.
    """
    composer = SlotComposer(plan, budget)
    return walked(((tree, composer.choices(tree)) for tree in trees), breadth_first=breadth_first)


def walked(compositions: Iterable[tuple[Tree, Iterator[Choice]]], *, breadth_first: bool) -> Iterator[Candidate]:
    """Yield the candidates of trees whose choices are composed as they are asked for, in the same two ways."""
    once = _Once()
    candidates = (zip(repeat(tree.root), once.choices_of(tree, choices)) for tree, choices in compositions)
    return _round_robin(candidates) if breadth_first else _one_by_one(candidates)


class _Once:
    """Leaves out the choices that another tree gave already: only providers that share can be reached from two."""

    def __init__(self) -> None:
        self._seen: set[Choice] = set()
        self._of_pools: dict[tuple[tuple[int, ...], ...], Iterator[Choice]] = {}

    def choices_of(self, tree: Tree, choices: Iterator[Choice]) -> Iterator[Choice]:
        """Return those of a tree's choices that are new when they are asked for."""
        if not tree.sharing:
            return choices
        new = _not_seen(choices, tree.sharing, self._seen)
        if tree.gives_of_its_own:
            return new
        # A tree that has nothing of its own goes on where another one with the same pools has come to: thousands of
        # hosts have the same, and each would compose what the others have given.
        return self._of_pools.setdefault(tuple(map(tuple, tree.options)), new)


def _not_seen(choices: Iterator[Choice], sharing: AbstractSet[int], seen: set[Choice]) -> Iterator[Choice]:
    for choice in choices:
        if all([provider in sharing for provider in choice]):
            if choice in seen:
                continue
            seen.add(choice)
        yield choice


def _one_by_one(compositions: Iterable[Iterator[Candidate]]) -> Iterator[Candidate]:
    for composition in compositions:
        yield from composition


def _round_robin(compositions: Iterable[Iterator[Candidate]]) -> Iterator[Candidate]:
    waiting: list[Iterator[Candidate]] = []
    for composition in compositions:
        first = next(composition, None)
        if first is not None:
            yield first
            waiting.append(composition)
    while waiting:
        still: list[Iterator[Candidate]] = []
        for composition in waiting:
            following = next(composition, None)
            if following is not None:
                yield following
                still.append(composition)
        waiting = still

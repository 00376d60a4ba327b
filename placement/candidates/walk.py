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
    seen: set[Choice] = set()
    candidates = (_candidates_of(tree, choices, seen) for tree, choices in compositions)
    return _round_robin(candidates) if breadth_first else _one_by_one(candidates)


def _candidates_of(tree: Tree, choices: Iterator[Choice], seen: set[Choice]) -> Iterator[Candidate]:
    """Return a tree's candidates but those that another tree gave already."""
    # Only providers that share can be reached from two trees; one other provider settles it.
    return zip(repeat(tree.root), _not_seen(choices, tree.sharing, seen) if tree.sharing else choices)


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

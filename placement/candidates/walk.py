"""From trees to the list of candidates: the order in which trees are visited, and no duplicates."""

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

    Depth first exhausts a tree before going on to the next; breadth first takes each tree's first candidate before any
    tree's second. Trees are pulled only as candidates are.
    """
    composer = SlotComposer(plan, budget)
    return walked(((tree, composer.choices(tree)) for tree in trees), breadth_first=breadth_first)


def walked(compositions: Iterable[tuple[Tree, Iterator[Choice]]], *, breadth_first: bool) -> Iterator[Candidate]:
    """Yield the candidates of trees composed lazily, depth or breadth first, without duplicates."""
    distinct = _DistinctChoices()
    candidates = (zip(repeat(tree.root), distinct.of(tree, choices)) for tree, choices in compositions)
    return _round_robin(candidates) if breadth_first else _one_by_one(candidates)


class _DistinctChoices:
    """Drops choices that another tree has given: those of sharing providers alone can be found in several trees."""

    def __init__(self) -> None:
        self._seen: set[Choice] = set()
        self._of_pools: dict[tuple[tuple[int, ...], ...], Iterator[Choice]] = {}

    def of(self, tree: Tree, choices: Iterator[Choice]) -> Iterator[Choice]:
        """Return those of a tree's choices that are new when they are pulled."""
        if not tree.sharing:
            return choices
        new = _not_seen(choices, tree.sharing, self._seen)
        if tree.gives_of_its_own:
            return new
        # Thousands of hosts may have the same pools and nothing of their own. They share one iterator: each resumes
        # where the last one stopped, rather than composing again what the others have given.
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

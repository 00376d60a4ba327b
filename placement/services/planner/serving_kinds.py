"""Rules out trees by their outlines, before they are read in detail.

A request that fails by its rules fails in thousands of hosts, hardly two of which have the same in use. To a kind it
does not matter which of several equal devices are in use, so these hosts are of few kinds: the same rules fail in hosts
with the same structure.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property

from placement.allocators.budget import Budget
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.host_kinds import KindOf
from placement.domain.planner_tree import PlannerTree
from placement.domain.tree import Tree

STEPS = 100_000
"""The most steps for one request to rule out trees; composing decides about those that are left."""

TREES_OF_A_KIND = 2
"""How many trees a kind must have on average: judging a kind costs as much as composing in one tree."""

OutlinesOf = Callable[[Sequence[Tree]], Sequence[PlannerTree]]


class ServingKinds:
    """Which kinds of trees can serve a request, as far as their outlines tell.

    Args:
        composer_of: returns the composer of the request, which is needed once trees are judged.
        kind: classifies trees: all of a kind can serve it or none can.
        outlines_of: reads the outlines of trees.
    """

    def __init__(self, composer_of: Callable[[], ProposalComposer], kind: KindOf, outlines_of: OutlinesOf) -> None:
        self._composer_of = composer_of
        self._kind = kind
        self._outlines_of = outlines_of
        self._budget = Budget(STEPS)
        self._known: dict[Hashable, bool | None] = {}

    @cached_property
    def _composer(self) -> ProposalComposer:
        return self._composer_of()

    def lacking_in(self, trees: Sequence[Tree]) -> set[int]:
        """Return the roots of trees that provably cannot serve the request.

        These are none if it takes telling their kinds, and hardly two of them are alike.
        """
        composer, outlines = self._composer, self._outlines_of(trees)
        alike: dict[Hashable, list[tuple[Tree, PlannerTree]]] = defaultdict(list)
        for tree, outline in zip(trees, outlines, strict=True):
            alike[self._kind(tree, outline)].append((tree, outline))
        unknown = alike.keys() - self._known.keys()
        if len(unknown) * TREES_OF_A_KIND > len(trees):
            return set()
        for kind in unknown:
            is_over = self._budget.is_used_up
            self._known[kind] = None if is_over else composer.serves(*alike[kind][0], self._budget)
        return {tree.root for kind, of in alike.items() if self._known[kind] is False for tree, _outline in of}

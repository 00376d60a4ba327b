"""Bounds how few places a request touches in each tree, reading little of trees that will probably not be composed.

Where thousands of hosts are alike, each of them promises the best score until a bound tells otherwise, but only a few
are composed in the end.
"""

from collections.abc import Sequence

from placement.allocators.compactness import Counts
from placement.domain.planner_tree import PlannerTree
from placement.domain.tree import Tree
from placement.services.planner.ground import Ground
from placement.services.planner.reading_ahead import MAX_BATCH, ReadingAhead


class PlaceBounds:
    """Lower bounds on the places touched at each level, of one request.

    As many trees as are wanted are read in detail, because most of them are composed next; after these only outlines,
    of as many trees at a time as have been bounded before.

    Args:
        ground: the request, and what reads its trees.
        ahead: reads trees in detail before they are wanted, and knows which come next.
        wanted: roughly how many trees will be wanted.
    """

    def __init__(self, ground: Ground, ahead: ReadingAhead, *, wanted: int) -> None:
        self._ground = ground
        self._ahead = ahead
        self._in_detail = max(wanted, MAX_BATCH)
        self._known: dict[int, Counts] = {}

    def of(self, tree: Tree) -> Counts:
        """Return the bound for a tree."""
        if tree.root not in self._known:
            if self._ahead.has(tree) or len(self._known) < self._in_detail:
                self._ahead.read([tree])
                self._note([tree], self._ground.details.of([tree]))
            else:
                trees = [tree, *self._unbounded_next(tree)]
                self._note(trees, self._ground.outlines.of(trees))
        return self._known[tree.root]

    def _unbounded_next(self, tree: Tree) -> list[Tree]:
        return self._ahead.upcoming(len(self._known), but={*self._known, tree.root})

    def _note(self, trees: Sequence[Tree], seen: Sequence[PlannerTree]) -> None:
        composer = self._ground.prepared.composer
        self._known.update(
            {tree.root: composer.least_places(tree, details) for tree, details in zip(trees, seen, strict=True)}
        )

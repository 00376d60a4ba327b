"""Trees that were made up instead of being read from columns, for searches."""

import copy
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.layout import Layout, lay_out
from placement.cloud.providers import Ints
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree


class TreesInMemory:
    """Has the methods of a ``TreeReader``.

    Args:
        plan: the plan to serve.
        trees: those in which each demand of the plan has a provider, by root id.
        totals: the total capacity and usage of trees, by root id; a missing tree has nothing of any class.
        layout: where all options lie, if levels matter and the trees are not laid out yet; each has room for one.
        shares: whether trees missing from the totals may serve all the same.
    """

    def __init__(
        self,
        plan: Plan,
        trees: Sequence[Tree],
        totals: Mapping[int, ScoredNode] | None = None,
        *,
        layout: Layout | None = None,
        shares: bool = False,
    ) -> None:
        self.plan = plan
        self.shares = shares
        self.trees_read: list[int] = []
        """The roots of the trees read so far, in the order they were read."""
        self._trees = {tree.root: tree for tree in trees}
        self._totals = totals or {}
        self._layout = layout
        self.roots = np.array(sorted(self._trees), dtype=np.int64)
        self.complete = np.arange(len(self.roots))

    @property
    def shared_demands(self) -> AbstractSet[int]:
        demands, trees = range(len(self.plan.demands)), self._trees.values()
        return {one for one in demands if any(not tree.sharing.isdisjoint(tree.options[one]) for tree in trees)}

    def sums(self, classes: Sequence[str], roots: Collection[int]) -> list[tuple[int, ...]]:
        return [
            (root, *[int(of.get(name, 0)) for of in (node.allocatable, node.used) for name in classes])
            for root, node in self._totals.items()
            if root in roots and any(name in node.allocatable for name in classes)
        ]

    def sum_columns(self, classes: Sequence[str], trees: None) -> tuple[list[Ints], list[Ints]]:
        assert trees is None
        nodes = [self._totals.get(root, ScoredNode({}, {})) for root in self.roots.tolist()]
        capacity = [[node.allocatable.get(name, 0) for node in nodes] for name in classes]
        used = [[node.used.get(name, 0) for node in nodes] for name in classes]
        return [*map(np.array, capacity)], [*map(np.array, used)]

    def read(self, trees: Ints) -> list[Tree]:
        """Return copies of some trees, because a search may reorder their options."""
        roots = self.roots[trees].tolist()
        self.trees_read += roots
        copies = [copy.copy(self._trees[root]) for root in roots]
        for tree in copies:
            tree.options = [list(options) for options in tree.options]
        if self._layout is not None:
            lay_out(copies, self._layout, np.ones(len(self._layout.is_in_place)), {})
        return copies

    def all_trees(self) -> list[Tree]:
        return self.read(self.complete)

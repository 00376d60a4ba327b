"""Trees that were made up instead of being read from columns, for searches."""

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.tree_reader import lay_out
from placement.domain.places import Layout
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree


class TreesInMemory:
    """Has the methods of a ``TreeReader``.

    Args:
        plan: the plan to serve.
        trees: those in which each demand of the plan has a provider, by root id.
        totals: the total capacity and usage of trees, by root id; a missing tree has nothing of any class.
        layout: where the providers lie, if levels matter and the trees are not laid out yet; each has room for one.
        shares: whether trees missing from the totals may serve all the same.
    """

    is_possible = True
    only_root = None

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
        self.read: list[int] = []
        """The roots of the trees read so far, in the order they were read."""
        self._trees = {tree.root: tree for tree in trees}
        self._totals = totals or {}
        self._layout = layout

    @property
    def shared_demands(self) -> AbstractSet[int]:
        demands, trees = range(len(self.plan.demands)), self._trees.values()
        return {one for one in demands if any(not tree.sharing.isdisjoint(tree.options[one]) for tree in trees)}

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> list[tuple[int, ...]]:
        return [
            (root, *[int(of.get(name, 0)) for of in (node.allocatable, node.used) for name in classes])
            for root, node in self._totals.items()
            if (roots is None or root in roots) and any(name in node.allocatable for name in (*classes, *found_by))
        ]

    def chunks(self, wanted: int | None) -> Iterator[tuple[list[Tree], int]]:
        if wanted is None:
            yield self.all_trees(), max(self._trees, default=0)
            return
        for root in self._trees:
            yield self.trees_of([root]), root

    def with_room(self, roots: object) -> None: ...

    def trees_of(self, roots: Sequence[int]) -> list[Tree]:
        """Return copies of the trees with these roots, because a search may reorder their options."""
        wanted = [root for root in self._trees if root in set(roots)]
        self.read += wanted
        trees = [copy.copy(self._trees[root]) for root in wanted]
        for tree in trees:
            tree.options = [list(options) for options in tree.options]
        if self._layout is not None:
            lay_out(trees, self._layout, {one: 1.0 for tree in trees for row in tree.options for one in row}, {})
        return trees

    def all_trees(self) -> list[Tree]:
        return self.trees_of([*self._trees])

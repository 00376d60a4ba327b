"""A reader of trees in memory: for tests, and for searches of trees that come from elsewhere."""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from placement.allocators.strategy_fit import ScoredNode
from placement.domain.search_plan import Plan
from placement.domain.tree import PlaceFacts, Tree, TreesRead


class TreesInMemory:
    """A Reader of trees that exist in memory.

    Args:
        plan: the plan to serve.
        trees: those in which each demand of the plan has a provider, by root id.
        totals: the total capacity and usage of trees, by root id; a missing tree has nothing of any class.
        places: where the providers lie, if levels matter and the trees are not laid out yet.
        shares: whether trees missing from the totals may serve all the same.

    >>> from placement.candidates.budget import RequestBudget
    >>> from placement.candidates.search import found_candidates
    >>> from placement.domain.candidate_request import CandidateRequest, RequestGroup
    >>> from placement.domain.search_plan import plan_for
    >>> plan = plan_for(CandidateRequest(groups=(RequestGroup(resources={"PGPU": 1}),)))
    >>> reader = TreesInMemory(plan, [Tree(1, [[2, 3]]), Tree(4, [[5]])])
    >>> found_candidates(reader, None, budget=RequestBudget(), wanted=2, breadth_first=True)
    [(1, (2,)), (4, (5,))]
    """

    is_possible = True
    only_root = None
    most_listed = 1000

    def __init__(
        self,
        plan: Plan,
        trees: Sequence[Tree],
        totals: Mapping[int, ScoredNode] | None = None,
        *,
        places: PlaceFacts | None = None,
        shares: bool = False,
    ) -> None:
        self.plan = plan
        self.shares = shares
        self.read: list[int] = []
        """The roots of the trees read so far, in the order they were read."""
        self._trees = {tree.root: tree for tree in trees}
        self._totals = totals or {}
        self._places = places

    @property
    def shared_demands(self) -> AbstractSet[int]:
        """The demands of the plan that sharing providers may serve."""
        demands = range(len(self.plan.demands))
        trees = self._trees.values()
        return {one for one in demands if any(not tree.sharing.isdisjoint(tree.options[one]) for tree in trees)}

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> list[tuple[int, ...]]:
        """Return a row for each tree: its root, its capacity of each class, then its usage of each class."""
        return [
            (
                root,
                *[int(of.get(name, 0)) for of in (node.allocatable, node.used) for name in classes],
            )
            for root, node in self._totals.items()
            if (roots is None or root in roots) and any([name in node.allocatable for name in (*classes, *found_by)])
        ]

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield the trees one by one, or all at once if all are wanted."""
        if wanted is None:
            yield self.all_trees(), max(self._trees, default=0)
            return
        for root in self._trees:
            yield self.trees_of([root]), root

    def with_room(self, roots: Iterable[int]) -> None:
        """Return None: that would cost as much as to look at the trees."""

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return copies of the trees with these roots, because a search may reorder their options."""
        wanted = [root for root in self._trees if root in set(roots)]
        self.read += wanted
        trees = [copy.copy(self._trees[root]) for root in wanted]
        for tree in trees:
            tree.options = [list(options) for options in tree.options]
        return TreesRead(trees, self._places)

    def all_trees(self) -> TreesRead:
        """Return all trees."""
        return self.trees_of([*self._trees])

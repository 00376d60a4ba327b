"""The shares of a whole tree, maintained incrementally: hierarchical dominant resource fairness.

After A. Bhattacharya and others, "Hierarchical Scheduling for Diverse Datacenter Workloads" (H-DRF). The caller
(``state``) decides what leaves use and which are blocked; this module derives shares and order from that.
"""

from collections.abc import Hashable, Sequence

from placement.allocators.fair_share.nodes import LAST, BranchNode, Cohort, LeafNode, Node, Rank, Vector
from placement.allocators.fair_share.tree import Branch, Leaf, in_order, joined


class ShareTree:
    """A tree and its shares.

    A leaf's share is its largest fraction of any class. A branch's share is the largest element of its vector among the
    open classes; a branch is blocked when all its parts are. ``change``, ``move``, ``block`` and ``open_only`` only
    record changes; ``settle`` propagates them, in O(depth x (classes + log of the parts)) per leaf.

    Args:
        root: the tree. Initially, no leaf waits for anything.
        classes: the number of classes.
    """

    def __init__(self, root: Branch, classes: int) -> None:
        self.nodes: dict[str, Node] = {}
        self.leaves: dict[str, LeafNode] = {}
        self.branches: list[BranchNode] = []
        self._open: tuple[int, ...] = ()
        self._classes = classes
        self._changed: list[dict[BranchNode, None]] = []
        self._cohorts: dict[Hashable, dict[BranchNode, Cohort]] = {}
        self.root = self._planted(root)
        for leaf in self.leaves.values():
            self._enter(leaf, None, is_blocked=True)
        for branch in self.branches[1:]:
            _above(branch).ranked_anew(branch)
        self._all_changed()

    def _planted(self, root: Branch) -> BranchNode:
        """Create the nodes in natural order, parents before children."""
        planted = BranchNode(root, root.name, None, self._classes)
        waiting: list[tuple[Branch | Leaf, Node]] = [(root, planted)]
        while waiting:
            source, node = waiting.pop()
            self._plant(node)
            if isinstance(source, Branch) and isinstance(node, BranchNode):
                parts = [(inner, self._node(inner, node)) for inner in in_order(source.parts)]
                node.branches = [part for _inner, part in parts if isinstance(part, BranchNode)]
                waiting.extend(reversed(parts))
        return planted

    def _node(self, source: Branch | Leaf, above: BranchNode) -> Node:
        path = joined(above.path, source.name)
        if isinstance(source, Branch):
            return BranchNode(source, path, above, self._classes)
        return LeafNode(source, path, above, self._classes)

    def _plant(self, node: Node) -> None:
        node.index = len(self.nodes)
        self.nodes[node.path] = node
        if isinstance(node, LeafNode):
            self.leaves[node.path] = node
        elif isinstance(node, BranchNode):
            self.branches.append(node)
            if node.depth == len(self._changed):
                self._changed.append({})

    def change(self, leaf: LeafNode, vector: Vector) -> None:
        """Record a leaf's usage, as fractions of the totals."""
        if vector != leaf.vector:
            cohort, above = leaf.cohort, _above(leaf)
            above.count(cohort, -1)
            cohort.withdraw(leaf)
            leaf.take(vector, max(vector, default=0))
            cohort.add(leaf)
            above.count(cohort, 1)
            self._noted(cohort)

    def move(self, leaf: LeafNode, demand: Hashable, *, is_blocked: bool) -> None:
        """Record what a leaf waits for (a key that tells demands apart; None for nothing) and whether it is blocked."""
        cohort, above = leaf.cohort, _above(leaf)
        above.count(cohort, -1)
        cohort.withdraw(leaf)
        above.count(cohort, 1)
        self._noted(cohort)
        if not cohort.leaves:
            self._dissolve(cohort)
        self._enter(leaf, demand, is_blocked=is_blocked)

    def _enter(self, leaf: LeafNode, demand: Hashable, *, is_blocked: bool) -> None:
        above = _above(leaf)
        cohort = above.cohorts.get(demand)
        if cohort is None:
            cohort = above.cohorts[demand] = Cohort(above, self._classes, demand, is_blocked=is_blocked)
            self._cohorts.setdefault(demand, {})[above] = cohort
        else:
            above.count(cohort, -1)
        cohort.add(leaf)
        above.count(cohort, 1)
        self._noted(cohort)

    def _dissolve(self, cohort: Cohort) -> None:
        above, demand = cohort.above, cohort.demand
        above.count(cohort, -1)
        del above.cohorts[demand]
        del self._cohorts[demand][above]
        if not self._cohorts[demand]:
            del self._cohorts[demand]

    def block(self, demand: Hashable, *, is_blocked: bool) -> None:
        """Record whether all leaves that wait for a demand are blocked. O(branches that have such leaves)."""
        for above, cohort in self._cohorts.get(demand, {}).items():
            if cohort.is_blocked != is_blocked:
                above.count(cohort, -1)
                cohort.is_blocked = is_blocked
                above.count(cohort, 1)
                self._noted(cohort)

    def open_only(self, classes: Sequence[int]) -> None:
        """Record which classes are not exhausted; only those count in the shares of branches."""
        if tuple(classes) != self._open:
            self._open = tuple(classes)
            self._all_changed()

    def settle(self) -> None:
        """Recompute the shares of all branches that may have changed, the deepest first."""
        for level in reversed(self._changed):
            while level:
                self._refresh(level.popitem()[0])

    def _all_changed(self) -> None:
        for branch in self.branches:
            self._changed[branch.depth][branch] = None

    def _refresh(self, branch: BranchNode) -> None:
        vector, is_blocked = branch.summary(), not branch.open_parts
        share = max([vector[number] for number in self._open], default=0)
        above = branch.above
        if above is None:
            branch.take(vector, share)
            branch.is_blocked = is_blocked
        elif vector != branch.vector or share != branch.share or is_blocked != branch.is_blocked:
            above.count(branch, -1)
            branch.take(vector, share)
            branch.is_blocked = is_blocked
            above.count(branch, 1)
            self._noted(branch)
        elif branch.rank() != branch.best:
            self._noted(branch)

    def _noted(self, part: Cohort | BranchNode) -> None:
        """Record that a part has changed, and queue its branch for ``settle``."""
        above = part.above
        assert above is not None
        best = part.rank()
        if best != part.best:
            part.best = best
            above.ranked_anew(part)
        self._changed[above.depth][above] = None

    def first(self) -> LeafNode | None:
        """Return the leaf to serve next; None if all are blocked."""
        node: Node | None = self.root
        while isinstance(node, BranchNode):
            node = None if node.is_blocked else node.first()
        return node if isinstance(node, LeafNode) else None


def _above(node: Node) -> BranchNode:
    assert node.above is not None
    return node.above


def way_to(node: Node) -> list[Node]:
    """Return the nodes from just below the root down to this one."""
    way = []
    while node.above is not None:
        way.append(node)
        node = node.above
    return way[::-1]


def level_of(node: Node) -> int:
    """Return a node's sort key among its siblings; blocked nodes sort last."""
    return node.level + LAST * is_blocked(node)


def is_blocked(node: Node) -> bool:
    """Tell whether nothing below this node can be served."""
    assert isinstance(node, LeafNode | BranchNode)
    return node.is_blocked


def rank_of(leaf: Node) -> Rank:
    """Return a leaf's sort key in order of service: weighted shares from the top down, then its position in the tree.

    Between two branches with equal shares, their contents decide; blocked nodes sort after all others.
    """
    return tuple([level_of(node) for node in way_to(leaf)]), leaf.index

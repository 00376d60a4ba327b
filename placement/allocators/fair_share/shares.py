"""The shares of a whole tree, kept while leaves change: hierarchical dominant resource fairness.

After A. Bhattacharya and others, "Hierarchical Scheduling for Diverse Datacenter Workloads" (H-DRF). What leaves use
and which are blocked is told from outside (``state``); here is only what follows from it.
"""

from collections.abc import Iterator, Sequence

from placement.allocators.fair_share.nodes import BranchNode, Node, Rank, Vector
from placement.allocators.fair_share.tree import Branch, Leaf, in_order, joined


class ShareTree:
    """A tree and its shares.

    A leaf's share is its largest part of any class. A branch's share is the largest part of its vector among the
    classes that are open; it is blocked when all its parts are. ``change`` and ``open_only`` take note, ``settle``
    works out what follows: O(depth x (classes + log of the parts)) for a leaf.

    Args:
        root: the tree.
        classes: how many classes there are.
    """

    def __init__(self, root: Branch, classes: int) -> None:
        self.nodes: dict[str, Node] = {}
        self.leaves: dict[str, Node] = {}
        self._open: tuple[int, ...] = tuple(range(classes))
        self._classes = classes
        self._changed: list[dict[str, BranchNode]] = []
        self.root = self._planted(root)
        for node in self.nodes.values():
            node.best = ((node.level,), node.index)
            if node.above:
                node.above.add(node)
                node.above.ranked_anew(node)
        self._all_changed()

    def _planted(self, root: Branch) -> BranchNode:
        """Make the nodes, in natural order, parts after their branch."""
        planted = BranchNode(root, root.name, None, self._classes)
        waiting: list[Node] = [planted]
        while waiting:
            node = waiting.pop()
            self._plant(node)
            if isinstance(node, BranchNode):
                node.parts = [self._node(source, node) for source in in_order(node.sources)]
                waiting.extend(reversed(node.parts))
        return planted

    def _node(self, source: Branch | Leaf, above: BranchNode) -> Node:
        path = joined(above.path, source.name)
        if isinstance(source, Branch):
            return BranchNode(source, path, above, self._classes)
        return Node(source, path, above, self._classes)

    def _plant(self, node: Node) -> None:
        node.index = len(self.nodes)
        self.nodes[node.path] = node
        if not isinstance(node, BranchNode):
            self.leaves[node.path] = node
        elif node.depth == len(self._changed):
            self._changed.append({})

    def change(self, leaf: Node, vector: Vector, *, is_blocked: bool) -> None:
        """Take note of what a leaf uses, as parts of the totals, and of whether it is blocked."""
        self._replace(leaf, vector, max(vector, default=0), is_blocked=is_blocked)

    def open_only(self, classes: Sequence[int]) -> None:
        """Take note of which classes are not exhausted; only they count in the shares of branches."""
        if tuple(classes) != self._open:
            self._open = tuple(classes)
            self._all_changed()

    def settle(self) -> None:
        """Work out the shares of all branches that may have changed, the innermost first."""
        for level in reversed(self._changed):
            while level:
                self._refresh(level.popitem()[1])

    def _all_changed(self) -> None:
        for node in self.nodes.values():
            if isinstance(node, BranchNode):
                self._changed[node.depth][node.path] = node

    def _refresh(self, branch: BranchNode) -> None:
        vector = branch.summary()
        share = max([vector[number] for number in self._open], default=0)
        self._replace(branch, vector, share, is_blocked=not branch.open_parts)

    def _replace(self, node: Node, vector: Vector, share: int, *, is_blocked: bool) -> None:
        if vector != node.vector or share != node.share or is_blocked != node.is_blocked:
            if node.above:
                node.above.withdraw(node)
            node.take(vector, share, is_blocked=is_blocked)
            if node.above:
                node.above.add(node)
                self._changed[node.above.depth][node.above.path] = node.above
        self._rank(node)

    def _rank(self, node: Node) -> None:
        best = _best(node)
        if best != node.best:
            node.best = best
            if node.above:
                node.above.ranked_anew(node)
                self._changed[node.above.depth][node.above.path] = node.above

    def first(self) -> Node | None:
        """Return the leaf that is served next; None if all are blocked."""
        node: Node | None = self.root
        while isinstance(node, BranchNode):
            node = None if node.is_blocked else node.best_part()
        return node


def _best(node: Node) -> Rank:
    part = node.best_part() if isinstance(node, BranchNode) else None
    if part is None:
        return (node.level,), node.index
    levels, index = part.best
    return (node.level, *levels), index


def way_to(node: Node) -> Iterator[Node]:
    """Yield the nodes from below the root down to a node."""
    if node.above is not None:
        yield from way_to(node.above)
        yield node


def rank_of(leaf: Node) -> Rank:
    """Return what sorts leaves as they are served: weighted shares from the top down, then their places in the tree.

    Where two branches are level, what is inside them decides; a blocked node comes after all that are not.
    """
    return tuple([node.level for node in way_to(leaf)]), leaf.index

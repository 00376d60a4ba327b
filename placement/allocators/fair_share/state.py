"""A share tree over real totals: who uses what, who waits for what, and who is blocked as a consequence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from placement.allocators.fair_share.nodes import BranchNode, LeafNode, Node, Rank, Vector, as_float, ratio
from placement.allocators.fair_share.pending import Ceiling, PendingTask, TaskAmounts
from placement.allocators.fair_share.shares import ShareTree, is_blocked, rank_of
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, Branch, branches_of, way

NO_LIMIT = 1 << 80
"""More than anybody can ask for; stands for what is left where there is no limit."""


@dataclass(frozen=True, slots=True)
class NodeShare:
    """The state of one node.

    Args:
        path: the names from the root down to it.
        weight: relative to its siblings.
        usage: the actual usage of the node and everything below it.
        held: the largest fraction of a class in that usage, 0..1 (more only where usage exceeds the totals).
        vector: class -> what it counts as using; for a branch, its parts scaled to the smallest of them.
        share: the largest fraction of a class in the vector; a branch's leaves out exhausted classes.
        weighted_share: share / weight; the smallest is served next.
        dominant: the class of that largest fraction; None if there is none.
        is_blocked: whether a leaf waits for nothing, or for more than is free; or all parts of a branch are blocked.
        lacking: the classes of which less is left than a leaf waits for.
        is_leaf: whether it is a leaf.
    """

    path: str
    weight: float
    usage: Amounts
    held: float
    vector: Mapping[str, float]
    share: float
    weighted_share: float
    dominant: str | None
    is_blocked: bool
    lacking: tuple[str, ...]
    is_leaf: bool


class FairShares:
    """The shares of a tree, maintained as usage, pending tasks and totals change, in O(depth x classes) per change.

    When a task stops fitting or fits again, that costs O(branches with leaves that wait for it) more; when a class
    becomes exhausted or available with it, O(branches x classes). The number of leaves does not matter.

    A class is exhausted when no leaf waits for a task that fits and includes it, whether because nobody asks for it or
    because too little is left: nobody can be given any more of it.

    Args:
        root: the tree.
        totals: the total of each class that counts.
        usage: leaf -> its usage, by default nothing.
        tasks: leaf -> the task it waits for, by default nothing.

    Raises:
        ValueError: from here and every method, for a negative amount or a class that does not count.
        KeyError: a leaf is not in the tree.

    >>> from placement.allocators.fair_share.tree import Leaf
    >>> shares = FairShares(Branch("root", (Leaf("a"), Leaf("b"))), {"VCPU": 9, "MEMORY_MB": 18})
    >>> shares.use("root/a", {"VCPU": 1, "MEMORY_MB": 4})
    >>> shares.want("root/a", {"VCPU": 1, "MEMORY_MB": 4})
    >>> shares.want("root/b", {"VCPU": 3, "MEMORY_MB": 1})
    >>> shares.first()
    'root/b'
    >>> shares.node("root/a").dominant
    'MEMORY_MB'
    """

    def __init__(
        self,
        root: Branch,
        totals: Amounts,
        *,
        usage: Mapping[str, Amounts] | None = None,
        tasks: Mapping[str, Amounts] | None = None,
    ) -> None:
        self.root = root
        self.classes = tuple(sorted(totals))
        self._totals = self._amounts(totals)
        self._tree = ShareTree(root, len(self.classes))
        self._usage = dict.fromkeys(self._tree.leaves, (0,) * len(self.classes))
        self._ceilings = self._bounds(root)
        self._asked = [0] * len(self.classes)
        nothing = (0,) * len(self.classes)
        self._pending = {leaf: self._acquired(leaf, nothing) for leaf in self._tree.leaves}
        for leaf, amounts in (usage or {}).items():
            self.use(leaf, amounts)
        for leaf, amounts in (tasks or {}).items():
            self.want(leaf, amounts)

    def _bounds(self, root: Branch) -> dict[str, Ceiling]:
        """Return branch -> the innermost ceiling over its contents."""
        found: dict[str, Ceiling] = {}
        for path, branch in branches_of(root):
            above = found.get(path.rpartition(SEPARATOR)[0])
            if above is None:
                found[path] = Ceiling(self._totals)
            elif branch.limit:
                found[path] = Ceiling([branch.limit.get(name, NO_LIMIT) for name in self.classes], above)
            else:
                found[path] = above
        return found

    def use(self, leaf: str, amounts: Amounts) -> None:
        """Set a leaf's usage."""
        before, after = self._usage[leaf], self._amounts(amounts)
        if before == after:
            return
        self._usage[leaf] = after
        self._tree.change(self._tree.leaves[leaf], self._ratios(after))
        self._give_back(self._ceiling(leaf).path, [old - new for old, new in zip(before, after, strict=True)])

    def want(self, leaf: str, task: Amounts) -> None:
        """Set the task a leaf waits for, the amounts it would take next; empty if it waits for nothing."""
        before, after = self._pending[leaf], self._amounts(task)
        if before.task == after:
            return
        self._pending[leaf] = pending = self._acquired(leaf, after)
        self._tree.move(self._tree.leaves[leaf], pending if any(after) else None, is_blocked=pending.is_blocked)
        self._release(before)
        self._tree.open_only(self._open())

    def resize(self, name: str, total: int) -> None:
        """Set the total of a class. O(leaves)."""
        totals = self._amounts(dict(zip(self.classes, self._totals, strict=True)) | {name: total})
        more = [new - old for old, new in zip(self._totals, totals, strict=True)]
        self._totals = totals
        for leaf, usage in self._usage.items():
            self._tree.change(self._tree.leaves[leaf], self._ratios(usage))
        self._give_back((self._ceilings[self.root.name],), more)

    def leaves(self) -> Iterator[str]:
        """Yield the paths of all leaves in tree order."""
        yield from self._tree.leaves

    def totals(self) -> dict[str, int]:
        """Return the total of each class."""
        return dict(zip(self.classes, self._totals, strict=True))

    def usage(self, leaf: str) -> dict[str, int]:
        """Return a leaf's usage."""
        return dict(zip(self.classes, self._usage[leaf], strict=True))

    def wanted(self, leaf: str) -> dict[str, int]:
        """Return the task a leaf waits for."""
        return dict(zip(self.classes, self._pending[leaf].task, strict=True))

    def free(self) -> dict[str, int]:
        """Return what is left of each class, negative where usage exceeds the total."""
        return dict(zip(self.classes, self._ceilings[self.root.name].left, strict=True))

    def bounds(self, leaf: str) -> list[tuple[str, dict[str, int]]]:
        """Return the bounds on a leaf, from the root down: the branch, and what is left of each class in it."""
        found: dict[Ceiling, tuple[str, dict[str, int]]] = {}
        for path in way(leaf):
            ceiling = self._ceiling(path)
            found.setdefault(
                ceiling, (path.rpartition(SEPARATOR)[0], dict(zip(self.classes, ceiling.left, strict=True)))
            )
        return list(found.values())

    def first(self) -> str | None:
        """Return the leaf to serve next; None if all are blocked. O(depth x log of the parts)."""
        self._tree.settle()
        node = self._tree.first()
        return node.path if node else None

    def rank(self, leaf: str) -> Rank:
        """Return a leaf's sort key in the present order of service."""
        self._tree.settle()
        return rank_of(self._tree.leaves[leaf])

    def node(self, path: str) -> NodeShare:
        """Return the state of a node."""
        self._tree.settle()
        node = self._tree.nodes[path]
        return self._shown(node, self._together(node))

    def nodes(self) -> list[NodeShare]:
        """Return the state of all nodes in tree order, parents before children."""
        self._tree.settle()
        sums = self._sums()
        return [self._shown(node, sums[path]) for path, node in self._tree.nodes.items()]

    def holdings(self) -> dict[str, dict[str, int]]:
        """Return node -> the usage of the node and everything below it."""
        return {path: dict(zip(self.classes, sums, strict=True)) for path, sums in self._sums().items()}

    def _sums(self) -> dict[str, list[int]]:
        sums = {path: list(self._usage.get(path, [0] * len(self.classes))) for path in self._tree.nodes}
        for path, node in reversed(self._tree.nodes.items()):
            if node.above:
                above = sums[node.above.path]
                for number, amount in enumerate(sums[path]):
                    above[number] += amount
        return sums

    def _together(self, node: Node) -> Vector:
        """Sum the usage below a node."""
        found = [[0] * len(self.classes)]
        below = [node]
        while below:
            one = below.pop()
            if isinstance(one, BranchNode):
                below += one.branches
                below += [leaf for cohort in one.cohorts.values() for leaf in cohort.leaves]
            else:
                found.append(list(self._usage[one.path]))
        return [sum(amounts) for amounts in zip(*found, strict=True)]

    def _shown(self, node: Node, usage: Vector) -> NodeShare:
        is_leaf = isinstance(node, LeafNode)
        counting = range(len(self.classes)) if is_leaf else self._open()
        dominant = max(counting, key=lambda number: (node.vector[number], -number), default=None)
        return NodeShare(
            path=node.path,
            weight=node.numerator / node.denominator,
            usage=dict(zip(self.classes, usage, strict=True)),
            held=as_float(max(self._ratios(usage), default=0)),
            vector={
                name: as_float(part * total) if total else 0.0
                for name, part, total in zip(self.classes, node.vector, self._totals, strict=True)
            },
            share=as_float(node.share),
            weighted_share=as_float(node.weighted),
            dominant=self.classes[dominant] if dominant is not None and node.share else None,
            is_blocked=is_blocked(node),
            lacking=self._lacking(node.path) if is_leaf else (),
            is_leaf=is_leaf,
        )

    def _lacking(self, leaf: str) -> tuple[str, ...]:
        asked = zip(self.classes, self._pending[leaf].task, self._left_for(leaf), strict=True)
        return tuple([name for name, amount, left in asked if amount > 0 and amount > left])

    def _left_for(self, leaf: str) -> list[int]:
        bounds = [ceiling.left for ceiling in self._ceiling(leaf).path]
        return [min(left) for left in zip(*bounds, strict=True)]

    def _ceiling(self, leaf: str) -> Ceiling:
        return self._ceilings[leaf.rpartition(SEPARATOR)[0]]

    def _ratios(self, usage: Sequence[int]) -> Vector:
        return [ratio(used, total) for used, total in zip(usage, self._totals, strict=True)]

    def _acquired(self, leaf: str, task: TaskAmounts) -> PendingTask:
        """Return the pending task for these amounts, with one more leaf waiting for it."""
        pending = self._ceiling(leaf).pending(task)
        pending.leaves += 1
        self._count(pending)
        return pending

    def _release(self, pending: PendingTask) -> None:
        pending.leaves -= 1
        if not pending.leaves:
            self._count(pending)
            pending.ceilings[0].forget(pending)

    def _give_back(self, ceilings: Sequence[Ceiling], amounts: Sequence[int]) -> None:
        """Add freed amounts to the ceilings; negative amounts have been taken."""
        for pending in {pending: None for ceiling in ceilings for pending in ceiling.change(amounts)}:
            if pending.leaves:
                self._count(pending)
                self._tree.block(pending, is_blocked=pending.is_blocked)
        self._tree.open_only(self._open())

    def _count(self, pending: PendingTask) -> None:
        """Update how many servable pending tasks ask for each class."""
        is_counted = pending.leaves > 0 and not pending.is_blocked
        if is_counted != pending.is_counted:
            pending.is_counted = is_counted
            for number, amount in enumerate(pending.task):
                self._asked[number] += (1 if is_counted else -1) * bool(amount)

    def _open(self) -> list[int]:
        """Return the indexes of the classes that are not exhausted."""
        return [number for number, asked in enumerate(self._asked) if asked]

    def _amounts(self, amounts: Amounts) -> TaskAmounts:
        if not amounts.keys() <= set(self.classes) or min(amounts.values(), default=0) < 0:
            raise ValueError(f"expected amounts from 0 up of {', '.join(self.classes)}, found {dict(amounts)}")
        return tuple([amounts.get(name, 0) for name in self.classes])

"""A share tree over real totals: who uses what, who waits for what, who is blocked, and who is served next."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add, lt

from placement.allocators.fair_share.entitlement import Entitlements
from placement.allocators.fair_share.tree import (
    LAST,
    SCALE,
    Amounts,
    Branch,
    BranchNode,
    Node,
    Numbers,
    Rank,
    Vector,
    as_float,
    planted,
    ratio,
)


@dataclass(frozen=True, slots=True)
class NodeShare:
    """The state of one node.

    Args:
        usage: the actual usage of the node and everything below it.
        held: the largest fraction of a class in that usage, 0..1 (more only where usage exceeds the totals).
        vector: class -> what it counts as using; for a branch, its parts scaled to the smallest of them.
        share: the fraction of the dominant class in the vector; a branch's leaves out exhausted classes.
        weighted_share: share / weight, or relative to what was promised; the smallest is served next.
        dominant: the class with the largest weighted share; None if there is none.
        is_blocked: whether a leaf waits for nothing, or for more than is free; or all parts of a branch are blocked.
        lacking: the classes of which less is left than a leaf waits for.
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


class _TaskQueue:
    """The leaves that wait for the same task below the same limits: they are blocked together."""

    def __init__(self, task: Numbers, bounds: Sequence[BranchNode]) -> None:
        self.task = task
        self.bounds = bounds
        self.leaves: dict[Node, None] = {}
        self.is_blocked = not self.fits

    @property
    def fits(self) -> bool:
        """Whether the task asks for something, and enough is left of all that it asks for."""
        return any(self.task) and not self.lacking

    @property
    def lacking(self) -> set[int]:
        """The classes of which less is left than the task asks for."""
        requested = [(number, amount) for number, amount in enumerate(self.task) if amount]
        free_amounts = [bound.free for bound in self.bounds]
        return {number for free in free_amounts for number, amount in requested if amount > free[number]}


class FairShares:
    """The shares of a tree, maintained as usage and pending tasks change, in O(depth x classes) per change.

    Where a task stops fitting or fits again, that costs O(leaves that wait for it) more, and O(branches) for the
    classes that become exhausted or available with it. A class is exhausted when no leaf waits for a task that fits and
    includes it: nobody can be given more of it.

    Raises:
        ValueError: from here and every method, for a negative amount or a class that does not count.
        KeyError: a leaf is not in the tree.

    >>> from placement.allocators.fair_share.tree import Leaf
    >>> shares = FairShares(Branch("root", (Leaf("a"), Leaf("b"))), {"VCPU": 9, "MEMORY_MB": 18})
    >>> shares.use("root/a", {"VCPU": 1, "MEMORY_MB": 4})
    >>> shares.want("root/a", {"VCPU": 1, "MEMORY_MB": 4})
    >>> shares.want("root/b", {"VCPU": 3, "MEMORY_MB": 1})
    >>> shares.first(), shares.node("root/a").dominant
    ('root/b', 'MEMORY_MB')
    """

    def __init__(
        self,
        root: Branch,
        totals: Amounts,
        *,
        usage: Mapping[str, Amounts] | None = None,
        tasks: Mapping[str, Amounts] | None = None,
    ) -> None:
        self.root = root.name
        self.classes = tuple(sorted(totals))
        self._totals = self._numbers(totals)
        self._nodes = planted(root, self.classes, self._totals)
        self._branches = [node for node in self._nodes.values() if isinstance(node, BranchNode)]
        self._leaves = {path: node for path, node in self._nodes.items() if not isinstance(node, BranchNode)}
        depths = 1 + max([branch.depth for branch in self._branches])
        self._changed: list[dict[BranchNode, dict[Node, None]]] = [{} for _depth in range(depths)]
        """By depth, the branches to compute anew, and those of their parts that have changed."""
        for leaf, amounts in (usage or {}).items():
            self._leaves[leaf].usage = self._numbers(amounts)
        for branch in reversed(self._branches):
            branch.usage = tuple(map(sum, zip(*[part.usage for part in branch.parts], strict=True))) or branch.usage
            self._changed[branch.depth][branch] = dict.fromkeys(branch.parts)
        for node in self._leaves.values():
            node.take(self._ratios(node.usage), range(len(self.classes)))
        self._available: tuple[int, ...] = ()
        """The classes that are not exhausted."""
        self._is_available_stale = True
        self._largest = [0] * len(self.classes)
        """By class, at least the largest amount that anybody waits for: while more is left, nobody is blocked."""
        self._queues: dict[tuple[BranchNode, Numbers], _TaskQueue] = {}
        tasks = tasks or {}
        for leaf in tasks.keys() - self._leaves.keys():
            raise KeyError(leaf)
        self._queue_of = {leaf: self._enter(leaf, self._numbers(tasks.get(leaf, {}))) for leaf in self._leaves}
        for leaf, queue in self._queue_of.items():
            self._leaves[leaf].is_blocked = queue.is_blocked
        self._is_promised = any(branch.source.guarantee or branch.source.deserved for branch in self._branches)
        self._is_weighed = not self._is_promised

    def use(self, leaf: str, amounts: Amounts) -> None:
        """Set a leaf's usage."""
        node, usage = self._leaves[leaf], self._numbers(amounts)
        before, node.usage = node.usage, usage
        if before == usage:
            return
        more = [new - old for old, new in zip(before, usage, strict=True)]
        self._is_weighed &= not self._is_promised or [*map(bool, before)] == [*map(bool, usage)]
        node.take(self._ratios(usage), range(len(self.classes)))
        self._note(node)
        may_block, branch = False, node.above
        while branch is not None:
            free_before = branch.free
            branch.usage = tuple(map(add, branch.usage, more))
            may_block |= any(map(lt, map(min, free_before, branch.free), self._largest))
            branch = branch.above
        if may_block:
            self._block_anew()

    def want(self, leaf: str, amounts: Amounts) -> None:
        """Set the task a leaf waits for, the amounts it would take next; empty if it waits for nothing."""
        before, node, task = self._queue_of[leaf], self._leaves[leaf], self._numbers(amounts)
        if before.task == task:
            return
        del before.leaves[node]
        if not before.leaves:
            del self._queues[before.bounds[-1], before.task]
            self._is_available_stale = True
        self._queue_of[leaf] = queue = self._enter(leaf, task)
        self._is_weighed &= not self._is_promised or [*map(bool, before.task)] == [*map(bool, task)]
        if node.is_blocked != queue.is_blocked:
            node.is_blocked = queue.is_blocked
            self._note(node)

    def _enter(self, leaf: str, task: Numbers) -> _TaskQueue:
        """Return the queue of those who wait for a task, with one more leaf in it."""
        node = self._leaves[leaf]
        assert node.above is not None
        bounds = node.above.bounds
        key = bounds[-1], task
        if key not in self._queues:
            self._queues[key] = _TaskQueue(task, bounds)
            self._largest = [*map(max, self._largest, task)]
            self._is_available_stale = True
        self._queues[key].leaves[node] = None
        return self._queues[key]

    def _block_anew(self) -> None:
        """Block the leaves whose tasks no longer fit, and unblock those whose tasks fit again."""
        for queue in self._queues.values():
            if queue.is_blocked == queue.fits:
                queue.is_blocked = not queue.is_blocked
                self._is_available_stale = True
                for node in queue.leaves:
                    node.is_blocked = queue.is_blocked
                    self._note(node)

    def _note(self, node: Node) -> None:
        """Note that a node has changed, and the branch above with it."""
        if (branch := node.above) is not None:
            self._changed[branch.depth].setdefault(branch, {})[node] = None

    def _settle(self) -> None:
        """Recompute the shares of all branches that may have changed, the deepest first."""
        is_every_branch_stale = False
        if self._is_available_stale:
            self._is_available_stale = False
            tasks = [queue.task for queue in self._queues.values() if not queue.is_blocked]
            available = tuple([number for number, amounts in enumerate(zip(*tasks, strict=True)) if any(amounts)])
            if available != self._available:
                self._available, is_every_branch_stale = available, True
        if not self._is_weighed:
            self._weigh()
            is_every_branch_stale = True
        for branch in self._branches if is_every_branch_stale else ():
            self._changed[branch.depth].setdefault(branch, {})
        for branches in reversed(self._changed):
            while branches:
                branch, parts = branches.popitem()
                branch.count(parts)
                if branch.refresh(self._available):
                    self._note(branch)

    def _weigh(self) -> None:
        """Weigh the parts of branches that promise amounts, class by class."""
        entitlements = self.entitlements()
        for branch in self._branches:
            for node, class_weights in entitlements.class_weights(branch).items():
                node.weights = [weight.as_integer_ratio() for weight, _beforehand in class_weights]
                node.beforehand = [int(beforehand * SCALE) for _weight, beforehand in class_weights]
                if not isinstance(node, BranchNode):
                    node.take(node.vector, range(len(self.classes)))
                    self._note(node)
        self._is_weighed = True

    def entitlements(
        self, classes: Sequence[str] | None = None, *, more: Mapping[str, Amounts] | None = None
    ) -> Entitlements:
        """Return what each node is entitled to if all want more of what they use, await, or have in ``more``."""
        wanted_classes = {
            leaf: {
                name
                for name, used, awaited in zip(self.classes, node.usage, self._queue_of[leaf].task, strict=True)
                if used or awaited or (more and more.get(leaf, {}).get(name))
            }
            for leaf, node in self._leaves.items()
        }
        return Entitlements(
            self._nodes, self.totals(), wanted_classes, classes=self.classes if classes is None else classes
        )

    def leaves(self) -> Iterator[str]:
        """Yield the paths of all leaves in tree order."""
        return iter(self._leaves)

    def totals(self) -> dict[str, int]:
        """Return the total of each class."""
        return self._named(self._totals)

    def usage(self, path: str) -> dict[str, int]:
        """Return the usage of a node and everything below it."""
        return self._named(self._nodes[path].usage)

    def pending_task(self, leaf: str) -> dict[str, int]:
        """Return the task a leaf waits for."""
        return self._named(self._queue_of[leaf].task)

    def free(self) -> dict[str, int]:
        """Return what is left of each class, negative where usage exceeds the total."""
        return self._named(self._branches[0].free)

    def bounds(self, leaf: str) -> list[tuple[str, dict[str, int]]]:
        """Return the bounds on a leaf, from the root down: the branch, and what is left of each class in it."""
        return [(bound.path, self._named(bound.free)) for bound in self._queue_of[leaf].bounds]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Restore usage and pending tasks after the block."""
        before = [(leaf, node.usage, self._queue_of[leaf].task) for leaf, node in self._leaves.items()]
        yield
        for leaf, usage, task in before:
            if usage != self._leaves[leaf].usage:
                self.use(leaf, self._named(usage))
            if task != self._queue_of[leaf].task:
                self.want(leaf, self._named(task))

    def first(self) -> str | None:
        """Return the leaf to serve next; None if all are blocked. O(depth x log of the parts)."""
        self._settle()
        node: Node | None = self._branches[0]
        while isinstance(node, BranchNode):
            node = None if node.is_blocked else node.first()
        return node.path if node else None

    def rank(self, leaf: str) -> Rank:
        """Return a leaf's sort key: weighted shares from the top down, blocked nodes last, then its position."""
        self._settle()
        node, levels = self._nodes[leaf], list[int]()
        above: Node = node
        while above.above is not None:
            levels.append(above.level + LAST * above.is_blocked)
            above = above.above
        return tuple(levels[::-1]), node.index

    def node(self, path: str) -> NodeShare:
        """Return the state of a node."""
        self._settle()
        return self._shown(self._nodes[path])

    def nodes(self) -> list[NodeShare]:
        """Return the state of all nodes in tree order, parents before children."""
        self._settle()
        return [self._shown(node) for node in self._nodes.values()]

    def _shown(self, node: Node) -> NodeShare:
        queue, columns = self._queue_of.get(node.path), zip(self.classes, node.vector, self._totals, strict=True)
        return NodeShare(
            path=node.path,
            weight=float(node.source.weight),
            usage=self._named(node.usage),
            held=as_float(max(self._ratios(node.usage), default=0)),
            vector={name: as_float(part * total) if total else 0.0 for name, part, total in columns},
            share=as_float(node.share),
            weighted_share=as_float(node.weighted),
            dominant=None if node.dominant is None else self.classes[node.dominant],
            is_blocked=node.is_blocked,
            lacking=tuple([self.classes[number] for number in sorted(queue.lacking)]) if queue else (),
            is_leaf=queue is not None,
        )

    def _ratios(self, usage: Sequence[int]) -> Vector:
        return [ratio(used, total) for used, total in zip(usage, self._totals, strict=True)]

    def _named(self, numbers: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.classes, numbers, strict=True))

    def _numbers(self, amounts: Amounts) -> Numbers:
        if not amounts.keys() <= set(self.classes) or min(amounts.values(), default=0) < 0:
            raise ValueError(f"expected amounts from 0 up of {', '.join(self.classes)}, found {dict(amounts)}")
        return tuple([amounts.get(name, 0) for name in self.classes])

"""A share tree over real totals: who uses what, who waits for what, who is blocked, and who is served next."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from placement.allocators.fair_share.entitlement import NO_LIMIT, Entitlements, class_weights
from placement.allocators.fair_share.nodes import LAST, BranchNode, Node, Rank, Vector, as_float, ratio, way_to
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, Branch, Leaf, branches_of, in_order, joined, way

Numbers = tuple[int, ...]
"""Amounts in the order of the classes."""


@dataclass(frozen=True, slots=True)
class NodeShare:
    """The state of one node.

    Args:
        path: the names from the root down to it.
        weight: relative to its siblings.
        usage: the actual usage of the node and everything below it.
        held: the largest fraction of a class in that usage, 0..1 (more only where usage exceeds the totals).
        vector: class -> what it counts as using; for a branch, its parts scaled to the smallest of them.
        share: the fraction of the dominant class in the vector; a branch's leaves out exhausted classes.
        weighted_share: share / weight, or relative to what was promised; the smallest is served next.
        dominant: the class with the largest weighted share; None if there is none.
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


@dataclass(slots=True, eq=False)
class Ceiling:
    """What is left of each class below one branch, the root or one with a limit."""

    path: str
    left: Sequence[int]


class Queued:
    """The leaves that wait for the same task below the same ceilings: they are blocked together."""

    __slots__ = ("ceilings", "is_blocked", "leaves", "task")

    def __init__(self, task: Numbers, ceilings: tuple[Ceiling, ...]) -> None:
        self.task = task
        self.ceilings = ceilings
        self.leaves: dict[Node, None] = {}
        self.is_blocked = not self.fits

    @property
    def fits(self) -> bool:
        """Whether the task asks for something, and enough is left of all that it asks for."""
        return any(self.task) and not any(
            amount > left
            for ceiling in self.ceilings
            for amount, left in zip(self.task, ceiling.left, strict=True)
            if amount
        )


class FairShares:
    """The shares of a tree, maintained as usage and pending tasks change, in O(depth x classes) per change.

    Where a task stops fitting or fits again, that costs O(leaves that wait for it) more, and O(branches) for the
    classes that become exhausted or available with it. A class is exhausted when no leaf waits for a task that fits and
    includes it, whether because nobody asks for it or because too little is left: nobody can be given more of it.

    Raises:
        ValueError: from here and every method, for a negative amount or a class that does not count.
        KeyError: a leaf is not in the tree.

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
        self._totals = self._numbers(totals)
        self._nodes: dict[str, Node] = {}
        self._dirty: list[dict[BranchNode, None]] = []
        self._plant(root)
        nothing = (0,) * len(self.classes)
        self._usage = {path: nothing for path, node in self._nodes.items() if not isinstance(node, BranchNode)}
        self._ceilings = self._bounds()
        self._open: tuple[int, ...] = ()
        self._is_open_stale = True
        self._largest = [0] * len(self.classes)
        """By class, at least the largest amount that anybody waits for: while more is left, nobody is blocked."""
        self._queued: dict[tuple[Ceiling, Numbers], Queued] = {}
        self._waits = {leaf: self._enter(leaf, nothing) for leaf in self._usage}
        self._is_promised = any(branch.guarantee or branch.deserved for _path, branch in branches_of(root))
        self._is_weighed = not self._is_promised
        for node in reversed(self._nodes.values()):
            if isinstance(node, BranchNode):
                node.count(node.parts)
        self._all_dirty()
        for leaf, amounts in (usage or {}).items():
            self.use(leaf, amounts)
        for leaf, amounts in (tasks or {}).items():
            self.want(leaf, amounts)

    def _plant(self, root: Branch) -> None:
        """Create the nodes in natural order, parents before children."""
        waiting: list[tuple[Branch | Leaf, BranchNode | None]] = [(root, None)]
        while waiting:
            source, above = waiting.pop()
            path = joined(above.path, source.name) if above else source.name
            made = BranchNode if isinstance(source, Branch) else Node
            node = made(source, path, above, len(self.classes))  # type: ignore[arg-type]
            node.index = len(self._nodes)
            self._nodes[path] = node
            if above:
                above.parts.append(node)
            if isinstance(node, BranchNode) and isinstance(source, Branch):
                waiting += [(inner, node) for inner in reversed(in_order(source.parts))]
                if node.depth == len(self._dirty):
                    self._dirty.append({})

    def _bounds(self) -> dict[str, tuple[Ceiling, ...]]:
        """Return branch -> the ceilings over its contents, the root's first."""
        found: dict[str, tuple[Ceiling, ...]] = {}
        for path, branch in branches_of(self.root):
            above = found.get(path.rpartition(SEPARATOR)[0])
            if above is None:
                found[path] = (Ceiling(path, self._totals),)
            elif branch.limit:
                limits = [branch.limit.get(name, NO_LIMIT) for name in self.classes]
                found[path] = (*above, Ceiling(path, limits))
            else:
                found[path] = above
        return found

    def use(self, leaf: str, amounts: Amounts) -> None:
        """Set a leaf's usage."""
        before, after = self._usage[leaf], self._numbers(amounts)
        if before == after:
            return
        self._usage[leaf] = after
        self._is_weighed &= not self._is_promised or [*map(bool, before)] == [*map(bool, after)]
        node = self._nodes[leaf]
        node.take(self._ratios(after), range(len(self.classes)))
        self._count(node)
        may_block = False
        for ceiling in self._ceilings_of(leaf):
            left = [left + old - new for left, old, new in zip(ceiling.left, before, after, strict=True)]
            may_block |= any(map(int.__lt__, map(min, ceiling.left, left), self._largest))
            ceiling.left = left
        if may_block:
            self._block_anew()

    def want(self, leaf: str, task: Amounts) -> None:
        """Set the task a leaf waits for, the amounts it would take next; empty if it waits for nothing."""
        before, after = self._waits[leaf], self._numbers(task)
        if before.task == after:
            return
        node = self._nodes[leaf]
        del before.leaves[node]
        if not before.leaves:
            del self._queued[before.ceilings[-1], before.task]
            self._is_open_stale = True
        self._waits[leaf] = self._enter(leaf, after)
        self._is_weighed &= not self._is_promised or [*map(bool, before.task)] == [*map(bool, after)]
        if node.is_blocked != self._waits[leaf].is_blocked:
            node.is_blocked = not node.is_blocked
            self._count(node)

    def _enter(self, leaf: str, task: Numbers) -> Queued:
        """Return the queue of those who wait for a task, with one more leaf in it."""
        ceilings = self._ceilings_of(leaf)
        key = ceilings[-1], task
        if key not in self._queued:
            self._queued[key] = Queued(task, ceilings)
            self._largest = [*map(max, self._largest, task)]
            self._is_open_stale = True
        self._queued[key].leaves[self._nodes[leaf]] = None
        return self._queued[key]

    def _block_anew(self) -> None:
        """Block the leaves whose tasks no longer fit, and unblock those whose tasks fit again."""
        changed = defaultdict[BranchNode | None, list[Node]](list)
        for queued in self._queued.values():
            if queued.is_blocked == queued.fits:
                queued.is_blocked = not queued.is_blocked
                self._is_open_stale = True
                for node in queued.leaves:
                    node.is_blocked = queued.is_blocked
                    changed[node.above].append(node)
        for branch, nodes in changed.items():
            if branch is not None:
                branch.count(nodes)
                self._dirty[branch.depth][branch] = None

    def _count(self, node: Node) -> None:
        if node.above is not None:
            node.above.count([node])
            self._dirty[node.above.depth][node.above] = None

    def _settle(self) -> None:
        """Recompute the shares of all branches that may have changed, the deepest first."""
        if self._is_open_stale:
            self._is_open_stale = False
            asked = [queued.task for queued in self._queued.values() if not queued.is_blocked]
            available = tuple([number for number, amounts in enumerate(zip(*asked, strict=True)) if any(amounts)])
            if available != self._open:
                self._open = available
                self._all_dirty()
        if not self._is_weighed:
            self._weigh()
        for level in reversed(self._dirty):
            while level:
                self._refresh(level.popitem()[0])

    def _all_dirty(self) -> None:
        for node in self._nodes.values():
            if isinstance(node, BranchNode):
                self._dirty[node.depth][node] = None

    def _refresh(self, branch: BranchNode) -> None:
        branch.is_blocked = not branch.open_parts
        branch.take(branch.combined(), self._open)
        if branch.above is not None and (branch.counted != branch.contribution() or branch.ranked() != branch.rank):
            self._count(branch)

    def _weigh(self) -> None:
        """Weigh the parts of branches that promise amounts, class by class."""
        entitlements = self.entitlements()
        for path, branch in branches_of(self.root):
            for inner, weights in class_weights(branch, path, entitlements).items():
                node = self._nodes[inner]
                node.weigh(weights)
                if not isinstance(node, BranchNode):
                    node.take(node.vector, range(len(self.classes)))
                    self._count(node)
        self._all_dirty()
        self._is_weighed = True

    def entitlements(
        self, classes: Sequence[str] | None = None, *, more: Mapping[str, Amounts] | None = None
    ) -> Entitlements:
        """Return what each node is entitled to if everybody wants more of what it uses or waits for.

        ``more`` has amounts of other classes that leaves want as well.
        """
        wanted = {
            leaf: {
                name
                for name, used, asked in zip(self.classes, usage, self._waits[leaf].task, strict=True)
                if used or asked or (more and more.get(leaf, {}).get(name))
            }
            for leaf, usage in self._usage.items()
        }
        return Entitlements(self.root, self.totals(), wanted, classes=self.classes if classes is None else classes)

    def leaves(self) -> Iterator[str]:
        """Yield the paths of all leaves in tree order."""
        return iter(self._usage)

    def totals(self) -> dict[str, int]:
        """Return the total of each class."""
        return self._named(self._totals)

    def usage(self, leaf: str) -> dict[str, int]:
        """Return a leaf's usage."""
        return self._named(self._usage[leaf])

    def wanted(self, leaf: str) -> dict[str, int]:
        """Return the task a leaf waits for."""
        return self._named(self._waits[leaf].task)

    def free(self) -> dict[str, int]:
        """Return what is left of each class, negative where usage exceeds the total."""
        return self._named(self._ceilings[self.root.name][0].left)

    def bounds(self, leaf: str) -> list[tuple[str, dict[str, int]]]:
        """Return the bounds on a leaf, from the root down: the branch, and what is left of each class in it."""
        return [(ceiling.path, self._named(ceiling.left)) for ceiling in self._ceilings_of(leaf)]

    def first(self) -> str | None:
        """Return the leaf to serve next; None if all are blocked. O(depth x log of the parts)."""
        self._settle()
        node: Node | None = self._nodes[self.root.name]
        while isinstance(node, BranchNode):
            node = None if node.is_blocked else node.first()
        return node.path if node else None

    def rank(self, leaf: str) -> Rank:
        """Return a leaf's sort key: weighted shares from the top down, blocked nodes last, then its position."""
        self._settle()
        node = self._nodes[leaf]
        return tuple([each.level + LAST * each.is_blocked for each in way_to(node)]), node.index

    def node(self, path: str) -> NodeShare:
        """Return the state of a node."""
        self._settle()
        together, below = [0] * len(self.classes), [self._nodes[path]]
        for node in below:
            if isinstance(node, BranchNode):
                below += node.parts
            else:
                together = [*map(sum, zip(together, self._usage[node.path], strict=True))]
        return self._shown(self._nodes[path], together)

    def nodes(self) -> list[NodeShare]:
        """Return the state of all nodes in tree order, parents before children."""
        self._settle()
        sums = self._sums()
        return [self._shown(node, sums[path]) for path, node in self._nodes.items()]

    def holdings(self) -> dict[str, dict[str, int]]:
        """Return node -> the usage of the node and everything below it."""
        return {path: self._named(sums) for path, sums in self._sums().items()}

    def holdings_above(self, leaf: str) -> dict[str, dict[str, int]]:
        """Return the same for a leaf and the nodes above it, the root first."""
        sums = self._sums()
        return {path: self._named(sums[path]) for path in [self.root.name, *way(leaf)]}

    def _sums(self) -> dict[str, list[int]]:
        sums = {path: list(self._usage.get(path, [0] * len(self.classes))) for path in self._nodes}
        for path, node in reversed(self._nodes.items()):
            if node.above:
                above = sums[node.above.path]
                for number, amount in enumerate(sums[path]):
                    above[number] += amount
        return sums

    def _shown(self, node: Node, usage: Vector) -> NodeShare:
        is_leaf = not isinstance(node, BranchNode)
        return NodeShare(
            path=node.path,
            weight=float(node.source.weight),
            usage=self._named(usage),
            held=as_float(max(self._ratios(usage), default=0)),
            vector={
                name: as_float(part * total) if total else 0.0
                for name, part, total in zip(self.classes, node.vector, self._totals, strict=True)
            },
            share=as_float(node.share),
            weighted_share=as_float(node.weighted),
            dominant=None if node.dominant is None else self.classes[node.dominant],
            is_blocked=node.is_blocked,
            lacking=self._lacking(node.path) if is_leaf else (),
            is_leaf=is_leaf,
        )

    def _lacking(self, leaf: str) -> tuple[str, ...]:
        left = map(min, zip(*[ceiling.left for ceiling in self._ceilings_of(leaf)], strict=True))
        asked = zip(self.classes, self._waits[leaf].task, left, strict=True)
        return tuple([name for name, amount, most in asked if amount > 0 and amount > most])

    def _ceilings_of(self, leaf: str) -> tuple[Ceiling, ...]:
        return self._ceilings[leaf.rpartition(SEPARATOR)[0]]

    def _ratios(self, usage: Sequence[int]) -> Vector:
        return [ratio(used, total) for used, total in zip(usage, self._totals, strict=True)]

    def _named(self, numbers: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.classes, numbers, strict=True))

    def _numbers(self, amounts: Amounts) -> Numbers:
        if not amounts.keys() <= set(self.classes) or min(amounts.values(), default=0) < 0:
            raise ValueError(f"expected amounts from 0 up of {', '.join(self.classes)}, found {dict(amounts)}")
        return tuple([amounts.get(name, 0) for name in self.classes])

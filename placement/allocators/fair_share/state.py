"""A tree of shares over what there is: who uses what, who waits for what, and who is blocked by that."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import gt

from placement.allocators.fair_share.nodes import BranchNode, Node, Rank, Vector
from placement.allocators.fair_share.numbers import as_float, compared, ratio
from placement.allocators.fair_share.shares import ShareTree, rank_of
from placement.allocators.fair_share.tree import Amounts, Branch
from placement.allocators.fair_share.waiting import Waiting

_PLENTY = 1 << 64


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What is known of one node.

    Args:
        path: the names from the root down to it.
        weight: how much it counts beside its siblings.
        usage: what it and everything below it really use.
        held: the largest part of a class that this makes, 0..1 (more only where usage is over the totals).
        vector: what it counts as using; for a branch, its parts scaled to the smallest of them.
        share: the largest part of a class that the vector makes; for a branch, exhausted classes are left out.
        weighted_share: share / weight; the smallest is served next.
        dominant: the class of that largest part; None if there is none.
        is_blocked: a leaf that waits for nothing, or for more than is free; a branch of which all parts are blocked.
        lacking: the classes of which there is less than a leaf waits for.
        is_leaf: whether it is one.
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
    """The shares of a tree, kept while usage, demand and totals change; every change costs O(depth x classes).

    One exception: when a class becomes exhausted or free again, O(branches x classes) and the leaves that wait for it.

    Args:
        root: the tree.
        totals: how much there is of each class that counts.
        usage: leaf -> what it uses; nothing unless given.
        tasks: leaf -> what it waits for; nothing unless given.

    Raises:
        ValueError: here and in all methods, for an amount below 0 or of a class that does not count.
        KeyError: for a leaf that is not in the tree.

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
        self.classes = tuple(sorted(totals))
        self._nothing = (0,) * len(self.classes)
        self._totals = self._amounts(totals)
        self._tree = ShareTree(root, len(self.classes))
        self._usage = self._by_leaf(usage or {})
        self._tasks = self._by_leaf(tasks or {})
        self._used = _sum(self._usage.values(), len(self.classes))
        self._supposed: list[int] | None = None
        self._waiting = [Waiting() for _name in self.classes]
        for leaf, task in self._tasks.items():
            self._exchange(leaf, self._nothing, task)
            self._note(leaf)
        self._tree.open_only(self._open())

    def use(self, leaf: str, amounts: Amounts) -> None:
        """Set what a leaf uses."""
        before, after = self._usage[leaf], self._amounts(amounts)
        if before == after:
            return
        self._usage[leaf] = after
        free = self._free()
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            self._used[number] += new - old
        self._note(leaf)
        self._freed(free)

    def want(self, leaf: str, task: Amounts) -> None:
        """Set what a leaf waits for: the amounts that it could take next. Nothing if it is content."""
        before, after = self._tasks[leaf], self._amounts(task)
        if before == after:
            return
        self._tasks[leaf] = after
        self._exchange(leaf, before, after)
        self._note(leaf)

    def resize(self, name: str, total: int) -> None:
        """Set how much there is of a class. O(leaves)."""
        free = self._free()
        totals = dict(zip(self.classes, self._totals, strict=True)) | {name: total}
        self._totals = self._amounts(totals)
        for leaf in self._usage:
            self._note(leaf)
        self._freed(free)

    @contextmanager
    def supposing(self, plenty: Iterable[str]) -> Iterator[None]:
        """Inside, count as exhausted what is so now, except ``plenty``, whatever is used meanwhile.

        To judge what would be if a claim for these classes were served. Changes that are made inside stay.
        """
        before, plenty = self._free(), frozenset(plenty)
        self._supposed = [_PLENTY if name in plenty else left for name, left in zip(self.classes, before, strict=True)]
        self._freed(before)
        try:
            yield
        finally:
            before, self._supposed = self._free(), None
            self._freed(before)

    def leaves(self) -> Iterator[str]:
        """Yield the paths of all leaves, in their order in the tree."""
        yield from self._tree.leaves

    def usage(self, leaf: str) -> dict[str, int]:
        """Return what a leaf uses."""
        return dict(zip(self.classes, self._usage[leaf], strict=True))

    def wanted(self, leaf: str) -> dict[str, int]:
        """Return what a leaf waits for."""
        return dict(zip(self.classes, self._tasks[leaf], strict=True))

    def free(self) -> dict[str, int]:
        """Return what is left of each class; less than nothing where usage is over the totals."""
        return dict(zip(self.classes, self._left(), strict=True))

    def first(self) -> str | None:
        """Return the leaf that is served next, None if all are blocked. O(depth x log of the parts)."""
        self._tree.settle()
        node = self._tree.first()
        return node.path if node else None

    def rank(self, leaf: str) -> Rank:
        """Return what sorts leaves as they would be served now."""
        self._tree.settle()
        return rank_of(self._tree.leaves[leaf])

    def level(self, path: str) -> int:
        """Return a node's weighted share as it is compared with that of others, blocked or not."""
        self._tree.settle()
        return compared(self._tree.nodes[path].weighted)

    def node(self, path: str) -> NodeShare:
        """Return what is known of a node."""
        self._tree.settle()
        node = self._tree.nodes[path]
        return self._shown(node, _sum([self._usage[leaf.path] for leaf in _leaves(node)], len(self.classes)))

    def nodes(self) -> list[NodeShare]:
        """Return what is known of all nodes, in the order of the tree, each branch before its parts."""
        self._tree.settle()
        sums = {path: list(self._usage.get(path, [0] * len(self.classes))) for path in self._tree.nodes}
        for path, node in reversed(self._tree.nodes.items()):
            if node.above:
                sums[node.above.path] = _sum([sums[node.above.path], sums[path]], len(self.classes))
        return [self._shown(node, sums[path]) for path, node in self._tree.nodes.items()]

    def _shown(self, node: Node, usage: Vector) -> NodeShare:
        is_leaf = not isinstance(node, BranchNode)
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
            is_blocked=node.is_blocked,
            lacking=self._lacking(node.path) if is_leaf else (),
            is_leaf=is_leaf,
        )

    def _lacking(self, leaf: str) -> tuple[str, ...]:
        asked = zip(self.classes, self._tasks[leaf], self._free(), strict=True)
        return tuple([name for name, amount, free in asked if amount > 0 and amount > free])

    def _note(self, leaf: str) -> None:
        """Tell the tree what a leaf uses and whether it is blocked."""
        task = self._tasks[leaf]
        is_blocked = not any(task) or any(map(gt, task, [max(free, 0) for free in self._free()]))
        self._tree.change(self._tree.leaves[leaf], self._ratios(self._usage[leaf]), is_blocked=is_blocked)

    def _ratios(self, usage: Sequence[int]) -> Vector:
        return [ratio(used, total) for used, total in zip(usage, self._totals, strict=True)]

    def _exchange(self, leaf: str, before: Sequence[int], after: Sequence[int]) -> None:
        """Note that a leaf waits for something else."""
        for waiting, old, new in zip(self._waiting, before, after, strict=True):
            if old:
                waiting.remove(leaf, old)
            if new:
                waiting.add(leaf, new)

    def _freed(self, before: list[int]) -> None:
        """Take note of other amounts being free than before."""
        concerned = {
            leaf
            for waiting, old, new in zip(self._waiting, before, self._free(), strict=True)
            if old != new
            for leaf in waiting.between(old, new)
        }
        for leaf in concerned:
            self._note(leaf)
        self._tree.open_only(self._open())

    def _free(self) -> list[int]:
        """Return what counts as free."""
        return self._left() if self._supposed is None else self._supposed

    def _left(self) -> list[int]:
        return [total - used for total, used in zip(self._totals, self._used, strict=True)]

    def _open(self) -> list[int]:
        """Return the classes that are not exhausted."""
        return [number for number, free in enumerate(self._free()) if free > 0]

    def _by_leaf(self, amounts: Mapping[str, Amounts]) -> dict[str, tuple[int, ...]]:
        """Return the amounts of all leaves."""
        found = dict.fromkeys(self._tree.leaves, self._nothing)
        for leaf, of_leaf in amounts.items():
            if leaf not in found:
                raise KeyError(leaf)
            found[leaf] = self._amounts(of_leaf)
        return found

    def _amounts(self, amounts: Amounts) -> tuple[int, ...]:
        if not amounts.keys() <= set(self.classes) or min(amounts.values(), default=0) < 0:
            raise ValueError(f"expected amounts from 0 up of {', '.join(self.classes)}, found {dict(amounts)}")
        return tuple([amounts.get(name, 0) for name in self.classes])


def _leaves(node: Node) -> Iterator[Node]:
    if isinstance(node, BranchNode):
        for part in node.parts:
            yield from _leaves(part)
    else:
        yield node


def _sum(vectors: Iterable[Sequence[int]], classes: int) -> Vector:
    sums = [0] * classes
    for vector in vectors:
        for number, amount in enumerate(vector):
            sums[number] += amount
    return sums

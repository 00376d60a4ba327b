"""The nodes of a share tree, with sums and heaps that make a change cost one path to the root, not the whole tree.

A node's share follows from its vector, its fraction of each class. A leaf's vector is its usage. A branch's vector is
the sum over its parts, where unblocked parts are first scaled down to the smallest weighted share among them, M. With s
the share and w the weight of an unblocked part, it is

M x (sum of w/s x vector)  +  (sum of the vectors of all blocked parts)

and a branch maintains these two sums. M is the weighted share of the part to serve first, which a heap yields.

Leaves of one branch that wait for the same task are blocked together. They form a *cohort*, which enters both sums as
one, so that no leaf is touched when that task stops fitting or fits again.

Shares are fixed-point integers, multiples of 2**-192, so that sums do not depend on their order. Exact fractions are
impractical: the denominator of a sum over a thousand queues has a hundred thousand digits. Floats would make ties a
matter of luck. Shares are rounded to multiples of 2**-96 before they are compared. For leaves that makes comparison
exact (two fractions of totals below 2**48 are either equal or further apart than that); inside the tree, shares closer
than 2**-96 compare equal.
"""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Any

from placement.allocators.fair_share.tree import Branch, Leaf, ratio_of

PRECISION = 192
ONE = 1 << PRECISION
"""The share of whoever holds everything."""

COMPARED = 96
_DROPPED = PRECISION - COMPARED
_HALF = 1 << (_DROPPED - 1)


def ratio(used: int, total: int) -> int:
    """Return used / total as a share; 0/0 is 0, and any use of an empty total is a full share (HD-14).

    >>> [ratio(used, total) / ONE for used, total in [(0, 0), (5, 0), (5, 10)]]
    [0.0, 1.0, 0.5]
    """
    if total > 0:
        return used * ONE // total
    return ONE if used else 0


def compared(share: int) -> int:
    """Round a share for comparison, so that equal fractions compare equal however they were computed."""
    return (share + _HALF) >> _DROPPED


def as_float(share: int) -> float:
    """Return the float nearest to a share.

    >>> as_float(ratio(1, 3)) == 1 / 3
    True
    """
    return compared(share) / (1 << COMPARED)


Vector = list[int]
Rank = tuple[tuple[int, ...], int]
"""A key for the order of service: the weighted shares from a node down to its best leaf, then that leaf's index."""

LAST = 1 << 256
"""Added to a blocked node's weighted share; exceeds any share, so that blocked nodes sort last."""

_SLACK = 16


class Node:
    """What leaves and branches have in common.

    ``scaled`` is the vector scaled to a weighted share of 1; all zeros if the node has no share.
    """

    __slots__ = (
        "above",
        "denominator",
        "depth",
        "index",
        "level",
        "name",
        "numerator",
        "path",
        "scaled",
        "share",
        "vector",
        "weighted",
    )

    def __init__(self, source: Branch | Leaf, path: str, above: "BranchNode | None", classes: int) -> None:
        self.name = source.name
        self.path = path
        self.above = above
        self.depth: int = above.depth + 1 if above else 0
        self.index = 0
        self.numerator, self.denominator = ratio_of(source.weight)
        self.vector: Vector = [0] * classes
        self.scaled: Vector = self.vector
        self.share = 0
        self.weighted = 0
        self.level = 0
        """The weighted share, rounded for comparison."""

    def take(self, vector: Vector, share: int) -> None:
        """Set the node's vector and share, and everything derived from them."""
        self.vector = vector
        self.share = share
        self.weighted = share * self.denominator // self.numerator
        self.level = compared(self.weighted)
        if share:
            factor, divisor = ONE * self.numerator, share * self.denominator
            self.scaled = [part * factor // divisor for part in vector]
        else:
            self.scaled = [0] * len(vector)

    def __lt__(self, _other: Any) -> bool:
        """Let heaps compare entries: nodes are compared only when all else ties, that is, with themselves."""
        return False


class LeafNode(Node):
    """A leaf, in the cohort of those siblings that wait for the same task."""

    __slots__ = ("cohort",)

    def __init__(self, source: Leaf, path: str, above: "BranchNode", classes: int) -> None:
        super().__init__(source, path, above, classes)
        self.cohort: Cohort

    @property
    def is_blocked(self) -> bool:
        """Whether the leaf cannot be served."""
        return self.cohort.is_blocked


class Cohort:
    """The leaves of one branch that wait for the same task, and their sums."""

    __slots__ = ("_by_level", "above", "best", "demand", "is_blocked", "leaves", "scaled", "vector")

    def __init__(self, above: "BranchNode", classes: int, demand: Hashable, *, is_blocked: bool) -> None:
        self.above = above
        self.demand = demand
        self.is_blocked = is_blocked
        self.leaves: dict[LeafNode, None] = {}
        self.vector: Vector = [0] * classes
        self.scaled: Vector = [0] * classes
        self.best: Rank | None = None
        self._by_level: list[tuple[int, int, LeafNode]] = []

    def add(self, leaf: LeafNode) -> None:
        """Add a leaf to the sums."""
        leaf.cohort = self
        self.leaves[leaf] = None
        self.vector = [total + part for total, part in zip(self.vector, leaf.vector, strict=True)]
        self.scaled = [total + part for total, part in zip(self.scaled, leaf.scaled, strict=True)]
        heappush(self._by_level, (leaf.level, leaf.index, leaf))

    def withdraw(self, leaf: LeafNode) -> None:
        """Subtract a leaf's present contribution. Its heap entries stay until ``first`` meets them."""
        del self.leaves[leaf]
        self.vector = [total - part for total, part in zip(self.vector, leaf.vector, strict=True)]
        self.scaled = [total - part for total, part in zip(self.scaled, leaf.scaled, strict=True)]

    def first(self) -> LeafNode | None:
        """Return the leaf to serve first; None if there is none."""
        heap = self._by_level
        if len(heap) > 2 * len(self.leaves) + _SLACK:
            heap[:] = [(leaf.level, leaf.index, leaf) for leaf in self.leaves]
            heapify(heap)
        while heap and (heap[0][2] not in self.leaves or heap[0][2].level != heap[0][0]):
            heappop(heap)
        return heap[0][2] if heap else None

    def rank(self) -> Rank | None:
        """Return the cohort's sort key among the parts of its branch; None if it is empty."""
        first = self.first()
        return None if first is None else ((first.level + LAST * self.is_blocked,), first.index)

    def __lt__(self, _other: Any) -> bool:
        """Let heaps compare entries, as for nodes."""
        return False


class BranchNode(Node):
    """A branch: the sums over its parts, and a heap of them whose stale entries are dropped lazily.

    A part is a cohort or a branch. ``best`` is this branch's own rank among its siblings.
    """

    __slots__ = ("best", "branches", "by_rank", "cohorts", "is_blocked", "open_parts", "rest_sum", "scaled_sum")

    def __init__(self, source: Branch, path: str, above: "BranchNode | None", classes: int) -> None:
        super().__init__(source, path, above, classes)
        self.branches: list[BranchNode] = []
        self.cohorts: dict[Hashable, Cohort] = {}
        self.scaled_sum: Vector = [0] * classes
        self.rest_sum: Vector = [0] * classes
        self.open_parts = 0
        self.is_blocked = True
        self.best: Rank | None = ((LAST,), 0)
        self.by_rank: list[tuple[Rank, Cohort | BranchNode]] = []

    def count(self, part: "Cohort | BranchNode", sign: int) -> None:
        """Add a part to the sums, or subtract its present contribution: ``sign`` is 1 or -1."""
        sums, vector = (self.rest_sum, part.vector) if part.is_blocked else (self.scaled_sum, part.scaled)
        for number, amount in enumerate(vector):
            sums[number] += sign * amount
        self.open_parts += sign * (not part.is_blocked)

    def ranked_anew(self, part: "Cohort | BranchNode") -> None:
        """Push a part's new rank onto the heap; the old entry becomes stale."""
        if part.best is not None:
            heappush(self.by_rank, (part.best, part))

    def summary(self) -> Vector:
        """Compute the branch's vector."""
        first = self.first() if self.open_parts else None
        if first is None or not first.weighted:
            return list(self.rest_sum)
        smallest = first.weighted
        return [
            (smallest * scaled >> PRECISION) + rest for scaled, rest in zip(self.scaled_sum, self.rest_sum, strict=True)
        ]

    def first(self) -> "LeafNode | BranchNode | None":
        """Return the child to serve first, a leaf or a branch, blocked or not; None if there is none."""
        part = self.first_part()
        return part.first() if isinstance(part, Cohort) else part

    def first_part(self) -> "Cohort | BranchNode | None":
        """Return the part to serve first."""
        heap = self.by_rank
        if len(heap) > 2 * (len(self.branches) + len(self.cohorts)) + _SLACK:
            parts: list[Cohort | BranchNode] = [*self.branches, *self.cohorts.values()]
            heap[:] = [(part.best, part) for part in parts if part.best is not None]
            heapify(heap)
        while heap and heap[0][0] is not heap[0][1].best:
            heappop(heap)
        return heap[0][1] if heap else None

    def rank(self) -> Rank:
        """Return the branch's sort key among the parts of its parent."""
        level = self.level + LAST * self.is_blocked
        part = self.first_part()
        if part is None or part.best is None:
            return (level,), self.index
        levels, index = part.best
        return (level, *levels), index

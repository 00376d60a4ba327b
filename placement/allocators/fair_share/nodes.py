"""The nodes of a tree of shares: what each keeps, so that a change costs a way to the root and not the whole tree.

A node's share is worked out from its vector, the part of each class that it has (``numbers``). A leaf's vector is what
it uses. A branch's is the sum over its parts, where the parts that are not blocked are first scaled down to the
smallest weighted share among them, M. With s the share and w the weight of such a part that is

    M x (sum of w/s x vector)  +  (sum of the vectors of all others)

and the two sums are what a branch keeps. M is the weighted share of the part that is served first, which a heap keeps.

Leaves of a branch that wait for the same are blocked together. They are a *cohort*, which counts in both sums as one,
so that no leaf is touched when what they wait for is exhausted or free again.
"""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Any

from placement.allocators.fair_share.numbers import ONE, PRECISION, compared
from placement.allocators.fair_share.tree import Branch, Leaf, ratio_of

Vector = list[int]
Rank = tuple[tuple[int, ...], int]
"""Who is served first: the weighted shares from a node down to its best leaf, then that leaf's place in the tree."""

LAST = 1 << 256
"""Added to the weighted share of what is blocked: more than that can be, so that it comes after everything else."""

_SLACK = 16


class Node:
    """What leaves and branches have in common.

    ``scaled`` is the vector as it would be if the weighted share were 1. What has no share has nothing to be scaled.
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
        """The weighted share as it is compared with that of others."""

    def take(self, vector: Vector, share: int) -> None:
        """Set what the node has, and what follows from it alone."""
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
        """Heaps compare nodes only where all else is equal, which is the same node twice."""
        return False


class LeafNode(Node):
    """A leaf, in the cohort of those beside it that wait for the same."""

    __slots__ = ("cohort",)

    def __init__(self, source: Leaf, path: str, above: "BranchNode", classes: int) -> None:
        super().__init__(source, path, above, classes)
        self.cohort: Cohort

    @property
    def is_blocked(self) -> bool:
        """Whether it cannot be served."""
        return self.cohort.is_blocked


class Cohort:
    """The leaves of one branch that wait for the same, and the sums over them."""

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
        """Count a leaf in."""
        leaf.cohort = self
        self.leaves[leaf] = None
        self.vector = [total + part for total, part in zip(self.vector, leaf.vector, strict=True)]
        self.scaled = [total + part for total, part in zip(self.scaled, leaf.scaled, strict=True)]
        heappush(self._by_level, (leaf.level, leaf.index, leaf))

    def withdraw(self, leaf: LeafNode) -> None:
        """Count a leaf out, as it was counted in. Its entries in the heap stay until they are met."""
        del self.leaves[leaf]
        self.vector = [total - part for total, part in zip(self.vector, leaf.vector, strict=True)]
        self.scaled = [total - part for total, part in zip(self.scaled, leaf.scaled, strict=True)]

    def first(self) -> LeafNode | None:
        """Return the leaf that is served first; None if there is none."""
        heap = self._by_level
        if len(heap) > 2 * len(self.leaves) + _SLACK:
            heap[:] = [(leaf.level, leaf.index, leaf) for leaf in self.leaves]
            heapify(heap)
        while heap and (heap[0][2] not in self.leaves or heap[0][2].level != heap[0][0]):
            heappop(heap)
        return heap[0][2] if heap else None

    def rank(self) -> Rank | None:
        """Return what sorts this among the parts of its branch; None if nobody is in it."""
        first = self.first()
        return None if first is None else ((first.level + LAST * self.is_blocked,), first.index)

    def __lt__(self, _other: Any) -> bool:
        """As for nodes."""
        return False


class BranchNode(Node):
    """A branch: the sums over its parts, and a heap of them whose outdated entries are dropped when met.

    A part is a cohort or a branch. ``best`` is its rank among the parts beside it.
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
        """Count a part in, or out as it was counted in."""
        sums, vector = (self.rest_sum, part.vector) if part.is_blocked else (self.scaled_sum, part.scaled)
        for number, amount in enumerate(vector):
            sums[number] += sign * amount
        self.open_parts += sign * (not part.is_blocked)

    def ranked_anew(self, part: "Cohort | BranchNode") -> None:
        """Take note of a part's new rank."""
        if part.best is not None:
            heappush(self.by_rank, (part.best, part))

    def summary(self) -> Vector:
        """Return the vector of the branch."""
        first = self.first() if self.open_parts else None
        if first is None or not first.weighted:
            return list(self.rest_sum)
        smallest = first.weighted
        return [
            (smallest * scaled >> PRECISION) + rest for scaled, rest in zip(self.scaled_sum, self.rest_sum, strict=True)
        ]

    def first(self) -> "LeafNode | BranchNode | None":
        """Return the leaf or branch right below that is served first, blocked or not; None if there is none."""
        part = self.first_part()
        return part.first() if isinstance(part, Cohort) else part

    def first_part(self) -> "Cohort | BranchNode | None":
        """Return the part that is served first."""
        heap = self.by_rank
        if len(heap) > 2 * (len(self.branches) + len(self.cohorts)) + _SLACK:
            parts: list[Cohort | BranchNode] = [*self.branches, *self.cohorts.values()]
            heap[:] = [(part.best, part) for part in parts if part.best is not None]
            heapify(heap)
        while heap and heap[0][0] is not heap[0][1].best:
            heappop(heap)
        return heap[0][1] if heap else None

    def rank(self) -> Rank:
        """Return what sorts this among the parts of the branch above."""
        level = self.level + LAST * self.is_blocked
        part = self.first_part()
        if part is None or part.best is None:
            return (level,), self.index
        levels, index = part.best
        return (level, *levels), index

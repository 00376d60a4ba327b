"""The nodes of a tree of shares: what each keeps, so that a change costs a way to the root and not the whole tree.

A node's share is worked out from its vector, the part of each class that it has (``numbers``). A leaf's
vector is what it uses. A branch's is the sum over its parts, where the parts that are not blocked are first scaled
down to the smallest weighted share among them, M. With s the share and w the weight of such a part that is

    M x (sum of w/s x vector)  +  (sum of the vectors of all others)

and the two sums, with a heap for M, are what a branch keeps.
"""

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
    """What leaves and branches have in common."""

    __slots__ = (
        "above",
        "best",
        "denominator",
        "depth",
        "index",
        "is_blocked",
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
        self.share = 0
        self.weighted = 0
        self.is_blocked = True
        self.scaled: Vector | None = None
        self.best: Rank = ((LAST,), 0)

    def take(self, vector: Vector, share: int, *, is_blocked: bool) -> None:
        """Set what the node has, and what follows from it alone."""
        self.vector = vector
        self.share = share
        self.is_blocked = is_blocked
        self.weighted = share * self.denominator // self.numerator
        if is_blocked or not share:
            self.scaled = None
        else:
            factor, divisor = ONE * self.numerator, share * self.denominator
            self.scaled = [part * factor // divisor for part in vector]

    def __lt__(self, _other: Any) -> bool:
        """Heaps compare nodes only where all else is equal, which is the same node twice."""
        return False

    @property
    def level(self) -> int:
        """The node's weighted share as it is compared with that of others."""
        return compared(self.weighted) + (LAST if self.is_blocked else 0)


class BranchNode(Node):
    """A branch: the sums over its parts, and two heaps of them whose outdated entries are dropped when met."""

    __slots__ = ("by_rank", "by_share", "open_parts", "parts", "rest_sum", "scaled_sum", "sources")

    def __init__(self, source: Branch, path: str, above: "BranchNode | None", classes: int) -> None:
        super().__init__(source, path, above, classes)
        self.sources = source.parts
        self.parts: list[Node] = []
        self.scaled_sum: Vector = [0] * classes
        self.rest_sum: Vector = [0] * classes
        self.open_parts = 0
        self.by_share: list[tuple[int, int, Node]] = []
        self.by_rank: list[tuple[Rank, Node]] = []

    def add(self, part: Node) -> None:
        """Count a part in."""
        self._count(part, 1)
        if part.scaled is not None:
            heappush(self.by_share, (part.weighted, part.index, part))

    def withdraw(self, part: Node) -> None:
        """Count a part out, as it was counted in. Its entries in the heaps stay until they are met."""
        self._count(part, -1)

    def _count(self, part: Node, sign: int) -> None:
        sums, vector = (self.rest_sum, part.vector) if part.scaled is None else (self.scaled_sum, part.scaled)
        for number, amount in enumerate(vector):
            sums[number] += sign * amount
        self.open_parts += sign * (not part.is_blocked)

    def ranked_anew(self, part: Node) -> None:
        """Take note of a part's new rank."""
        heappush(self.by_rank, (part.best, part))

    def summary(self) -> Vector:
        """Return the vector of the branch."""
        smallest = self._smallest()
        if smallest is None:
            return list(self.rest_sum)
        return [
            (smallest * scaled >> PRECISION) + rest for scaled, rest in zip(self.scaled_sum, self.rest_sum, strict=True)
        ]

    def _smallest(self) -> int | None:
        """Return M, the smallest weighted share of the parts that are scaled."""
        heap = self.by_share
        if len(heap) > 2 * len(self.parts) + _SLACK:
            heap[:] = [(part.weighted, part.index, part) for part in self.parts if part.scaled is not None]
            heapify(heap)
        while heap and (heap[0][2].scaled is None or heap[0][2].weighted != heap[0][0]):
            heappop(heap)
        return heap[0][0] if heap else None

    def best_part(self) -> Node | None:
        """Return the part that is served first, blocked or not; None if there are no parts."""
        heap = self.by_rank
        if len(heap) > 2 * len(self.parts) + _SLACK:
            heap[:] = [(part.best, part) for part in self.parts]
            heapify(heap)
        while heap and heap[0][0] is not heap[0][1].best:
            heappop(heap)
        return heap[0][1] if heap else None

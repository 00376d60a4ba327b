"""The tree that shares are computed over: weighted branches and leaves, and hierarchical dominant resource fairness.

A node's share follows from its vector, its fraction of each class. A leaf's vector is its usage. A branch's vector is
the sum over its parts, where unblocked parts are first scaled down to the smallest weighted share among them, M. With s
the weighted share of an unblocked part, it is

M x (sum of vector / s)  +  (sum of the vectors of all blocked parts)

and a branch maintains these two sums, and a heap that yields M.

Shares are fixed-point integers, multiples of 2**-192, so that sums do not depend on their order, and are rounded to
multiples of 2**-96 before they are compared. Exact fractions are impractical: the denominator of a sum over a thousand
queues has a hundred thousand digits. Floats would make ties a matter of luck.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from operator import sub
from typing import Any

from placement.allocators import InvalidEntry, Number, check_number, exact, natural_key

Amounts = Mapping[str, int]
"""Resource class -> amount, in whole units."""

SEPARATOR = "/"

LEAST_WEIGHT, GREATEST_WEIGHT = Fraction(1, 10**6), 10**6


@dataclass(frozen=True, slots=True)
class Leaf:
    """A user of resources, such as a project or a job.

    InvalidEntry if the name cannot be part of a path, or the weight is not between a millionth and a million.
    """

    name: str
    weight: Number = 1

    def __post_init__(self) -> None:
        _check_part(self.name, self.weight)


@dataclass(frozen=True, slots=True)
class Branch:
    """A node that divides resources among its parts, by their weights. The root's weight has no meaning.

    Args:
        guarantee: class -> the amount that is never reclaimed from it.
        deserved: class -> the amount it is entitled to; anything beyond is borrowed. Unset classes go by weight.
        limit: class -> a hard upper bound.

    InvalidEntry as for a leaf, and for two parts of the same name.
    """

    name: str
    parts: tuple["Branch | Leaf", ...] = field(default=())
    weight: Number = 1
    guarantee: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_part(self.name, self.weight)
        names: set[str] = set()
        for part in self.parts:
            if part.name in names:
                raise InvalidEntry((self.name, part.name), "one part of each name", part.name)
            names.add(part.name)


def _check_part(name: str, weight: Number) -> None:
    if not name or SEPARATOR in name:
        raise InvalidEntry(("name",), "a name without a slash", name)
    check_number(weight, name, "weight")
    if not LEAST_WEIGHT <= exact(weight) <= GREATEST_WEIGHT:
        raise InvalidEntry((name, "weight"), "a number from 0.000001 to 1000000", weight)


def in_order(parts: Iterable[Branch | Leaf]) -> list[Branch | Leaf]:
    """Sort parts naturally by name; ties keep their order."""
    return sorted(parts, key=lambda part: natural_key(part.name))


def joined(above: str, name: str) -> str:
    """Append a name to a path."""
    return f"{above}{SEPARATOR}{name}" if above else name


def way(path: str) -> list[str]:
    """Return the paths from just below the root down to this node.

    >>> way("root/eng/dev")
    ['root/eng', 'root/eng/dev']
    """
    names = path.split(SEPARATOR)
    return [SEPARATOR.join(names[:end]) for end in range(2, len(names) + 1)]


PRECISION = 192
SCALE = 1 << PRECISION
"""The share of whoever holds everything."""

COMPARED = 96
_DROPPED = PRECISION - COMPARED

LAST = 1 << 256
"""Added to a blocked node's weighted share; exceeds any share, so that blocked nodes sort last."""

NO_LIMIT = 1 << 80
"""More than anybody can ask for; stands for what is left where there is no limit."""

_SLACK = 16
_MANY = 4
"""Where more than one part of a branch in so many changes at once, all of its parts are counted anew."""

_UNRANKED: "Rank" = (), -1

Numbers = tuple[int, ...]
"""Amounts in the order of the classes."""
Vector = list[int]
Contribution = tuple[bool, Vector]
"""What a part adds to its branch: whether it is blocked, and its vector, scaled unless it is."""
Rank = tuple[tuple[int, ...], int]
"""A key for the order of service: the weighted shares from a node down to its best leaf, then that leaf's index."""


def ratio(used: int, total: int) -> int:
    """Return used / total as a share; 0/0 is 0, and any use of an empty total is a full share (HD-14).

    >>> [ratio(used, total) / SCALE for used, total in [(0, 0), (5, 0), (5, 10)]]
    [0.0, 1.0, 0.5]
    """
    if total > 0:
        return used * SCALE // total
    return SCALE if used else 0


def _compared(share: int) -> int:
    """Round a share for comparison: equal fractions compare equal however they were computed."""
    return (share + (1 << (_DROPPED - 1))) >> _DROPPED


def as_float(share: int) -> float:
    """Return the float nearest to a share."""
    return _compared(share) / (1 << COMPARED)


class Node:
    """A leaf or a branch.

    ``usage`` is what it and everything below it use, ``vector`` its fraction of each class, ``share`` the largest of
    them that counts, ``weighted`` the same after division by the weights, ``level`` that rounded for comparison, and
    ``scaled`` the vector for a weighted share of 1. ``counted`` and ``rank`` are what the branch above knows of it.
    """

    def __init__(self, source: Branch | Leaf, path: str, above: "BranchNode | None", *, index: int, width: int) -> None:
        self.source = source
        self.path = path
        self.above = above
        self.index = index
        self.usage: Numbers = (0,) * width
        self.weights = [exact(source.weight).as_integer_ratio()] * width
        """The weight in each class, as numerator and denominator."""
        self.beforehand: Vector = [0] * width
        """What counts in the weighted share of each class besides the vector (``entitlement.BEGUN``)."""
        self.vector: Vector = [0] * width
        self.scaled: Vector = self.vector
        self.share = self.weighted = self.level = 0
        self.dominant: int | None = None
        self.is_blocked = True
        self.counted: Contribution | None = None
        self.rank = _UNRANKED

    def take(self, vector: Vector, classes: Collection[int]) -> None:
        """Set the vector, and the shares that follow from it if only these classes count."""
        self.vector = vector
        self.share = self.weighted = 0
        self.dominant = None
        for number in classes:
            numerator, denominator = self.weights[number]
            weighted = (vector[number] + self.beforehand[number]) * denominator // numerator
            if weighted > self.weighted:
                self.share, self.weighted, self.dominant = vector[number], weighted, number if vector[number] else None
        self.level = _compared(self.weighted)
        divisor = self.weighted
        self.scaled = [part * SCALE // divisor for part in vector] if divisor else [0] * len(vector)

    def contribution(self) -> Contribution:
        """Return what this node adds to the branch above."""
        return self.is_blocked, self.vector if self.is_blocked else self.scaled

    def ranked(self) -> Rank:
        """Return the sort key among siblings."""
        return (self.level + LAST * self.is_blocked,), self.index

    def __lt__(self, _node: Any) -> bool:
        return False  # Heaps compare nodes only when all else ties, that is, with themselves.


class BranchNode(Node):
    """A branch: the sums over its parts, and a heap of them whose stale entries are dropped lazily.

    ``bounds`` are the branches from the root down to this one that have a ``limit``; the root's are the totals.
    """

    def __init__(
        self, source: Branch, path: str, above: "BranchNode | None", *, index: int, limit: Sequence[int]
    ) -> None:
        super().__init__(source, path, above, index=index, width=len(limit))
        self.source: Branch = source
        self.depth: int = above.depth + 1 if above else 0
        self.limit = limit
        outer = above.bounds if above else ()
        self.bounds: tuple[BranchNode, ...] = (*outer, self) if source.limit or not above else outer
        self.parts: list[Node] = []
        self.open_parts = 0
        self._scaled_sum: Vector = [0] * len(limit)
        self._blocked_sum: Vector = [0] * len(limit)
        self._by_rank: list[tuple[Rank, Node]] = []

    @property
    def free(self) -> list[int]:
        """What is left of each class below the limit."""
        return [*map(sub, self.limit, self.usage)]

    def count(self, parts: Collection[Node]) -> None:
        """Replace what has been counted of parts by their present state; of many, all anew, which is faster."""
        if _MANY * len(parts) > len(self.parts) > _MANY:
            parts, self.open_parts, self._by_rank = self.parts, 0, []
            self._scaled_sum, self._blocked_sum = [0] * len(self.limit), [0] * len(self.limit)
            for part in parts:
                part.counted, part.rank = None, _UNRANKED
        for part in parts:
            if part.counted is not None:
                self._add(part.counted, sign=-1)
            part.counted = part.contribution()
            self._add(part.counted, sign=1)
            rank = part.ranked()
            if rank != part.rank:
                part.rank = rank
                heappush(self._by_rank, (rank, part))
        if len(self._by_rank) > 2 * len(self.parts) + _SLACK:
            self._by_rank = sorted([(part.rank, part) for part in self.parts])

    def _add(self, contribution: Contribution, *, sign: int) -> None:
        is_blocked, vector = contribution
        sums = self._blocked_sum if is_blocked else self._scaled_sum
        for number, amount in enumerate(vector):
            sums[number] += sign * amount
        self.open_parts += sign * (not is_blocked)

    def refresh(self, classes: Collection[int]) -> bool:
        """Set vector and shares by the parts, if only these classes count; return whether that matters above."""
        self.is_blocked = not self.open_parts
        first = self.first() if self.open_parts else None
        if first is None or not first.weighted:
            vector = list(self._blocked_sum)
        else:
            sums = zip(self._scaled_sum, self._blocked_sum, strict=True)
            vector = [(first.weighted * scaled >> PRECISION) + blocked for scaled, blocked in sums]
        self.take(vector, classes)
        return self.counted != self.contribution() or self.rank != self.ranked()

    def first(self) -> Node | None:
        """Return the part to serve first, blocked or not; None if there is none."""
        heap = self._by_rank
        while heap and heap[0][0] != heap[0][1].rank:
            heappop(heap)
        return heap[0][1] if heap else None

    def ranked(self) -> Rank:
        """Return the sort key among siblings: between equal shares, the contents decide."""
        level, first = self.level + LAST * self.is_blocked, self.first()
        if first is None:
            return (level,), self.index
        levels, index = first.rank
        return (level, *levels), index


def planted(root: Branch, classes: Sequence[str], totals: Sequence[int]) -> dict[str, Node]:
    """Return the nodes of a tree by path, in natural order, parents before children."""
    nodes: dict[str, Node] = {}
    waiting: list[tuple[Branch | Leaf, BranchNode | None]] = [(root, None)]
    while waiting:  # Iterative, here and elsewhere, so that depth is unlimited.
        source, above = waiting.pop()
        path = joined(above.path, source.name) if above else source.name
        if isinstance(source, Branch):
            limit = [source.limit.get(name, NO_LIMIT) for name in classes] if above else totals
            nodes[path] = branch = BranchNode(source, path, above, index=len(nodes), limit=limit)
            waiting += [(part, branch) for part in reversed(in_order(source.parts))]
        else:
            nodes[path] = Node(source, path, above, index=len(nodes), width=len(classes))
        if above:
            above.parts.append(nodes[path])
    return nodes

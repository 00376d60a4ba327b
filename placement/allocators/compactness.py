"""How compact a placement is: in how few NUMA nodes, and then in how few PCIe switches, its providers lie.

Each level, outermost first, counts the places of that level at or above the providers that resources are taken from. It
is the group allocator's objective, but by counting alone, so that tens of thousands of candidates can be sorted by it.

>>> one_node, two_switches, two_nodes = (1, 1), (1, 2), (2, 2)
>>> [round(compactness(counts), 1) for counts in (one_node, two_switches, two_nodes)]
[100.0, 66.7, 40.0]
"""

from collections.abc import Sequence

MAX_COMPACTNESS = 100.0
"""The compactness of what lies in a single place of every level."""

Counts = tuple[int, ...]
"""The number of touched places by level: the smaller, in lexicographic order, the more compact."""


def compactness(counts: Sequence[int]) -> float:
    """Score compactness from 0 (exclusive) to 100, independently of any other placement.

    The score is 100 / (count of the outermost level + how far the inner levels fall short of their best). It is higher
    if and only if the counts are lexicographically smaller: no saving in inner places makes up for an outer one.

    >>> compactness((2,)), compactness((1, 1, 1)), compactness(())
    (50.0, 100.0, 100.0)
    """
    share = 1.0
    for count in reversed(counts):
        share = 1.0 / (count + (1.0 - share))
    return MAX_COMPACTNESS * share

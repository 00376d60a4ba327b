"""How compact a placement is: in how few NUMA nodes, then in how few PCIe switches, its providers lie.

Levels are given outermost first. What is counted at each level are its *subtrees*: the places of that level at or
above the providers that resources are taken from. Providers below no place of a level do not count there.

The same objective as the group allocator's, by counting alone, so that it can order ten thousands of candidates.

>>> one_node, two_switches, two_nodes = (1, 1), (1, 2), (2, 2)
>>> [round(compactness(counts), 1) for counts in (one_node, two_switches, two_nodes)]
[100.0, 66.7, 40.0]
"""

from collections.abc import Sequence

MAX_COMPACTNESS = 100.0
"""The compactness of what lies in one place of every level."""

Counts = tuple[int, ...]
"""For each level the number of places touched: the smaller, in lexicographic order, the more compact."""


def compactness(counts: Sequence[int]) -> float:
    """Return how compact a placement is, from 0 (exclusive) to 100: absolute, whatever other placements there are.

    100 / (count of the outermost level + the part that the levels inside it fall short of their best). A placement
    has more than another exactly if its counts are smaller in lexicographic order: no number of inner places makes up
    for an outer one.

    >>> compactness((2,)), compactness((1, 1, 1)), compactness(())
    (50.0, 100.0, 100.0)
    """
    share = 1.0
    for count in reversed(counts):
        share = 1.0 / (count + (1.0 - share))
    return MAX_COMPACTNESS * share

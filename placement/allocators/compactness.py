"""How compact a placement is: in how few NUMA nodes, then in how few PCIe switches, its providers lie.

Levels are given outermost first. What is counted at each level are its *subtrees*: the places of that level at or
above the providers that resources are taken from. Providers below no place of a level do not count there.

The same objective as the group allocator's, by counting alone, so that it can order ten thousands of candidates.

>>> one_node = counted([(1, 7), (1, 7)], levels=2)
>>> two_switches = counted([(1, 7), (1, 8)], levels=2)
>>> two_nodes = counted([(1, 7), (2, 9), (None, None)], levels=2)
>>> one_node, two_switches, two_nodes
((1, 1), (1, 2), (2, 2))
>>> [round(compactness(counts), 1) for counts in (one_node, two_switches, two_nodes)]
[100.0, 66.7, 40.0]
"""

from collections.abc import Iterable, Sequence

MAX_COMPACTNESS = 100.0
"""The compactness of what lies in one place of every level."""

Position = Sequence[int | None]
"""For each level the id of the place that a provider lies in, None where it lies in none."""

Counts = tuple[int, ...]
"""For each level the number of places touched: the smaller, in lexicographic order, the more compact."""


def counted(positions: Iterable[Position], levels: int) -> Counts:
    """Return the number of places that providers touch at each level.

    At least 1: what touches no place of a level is as compact there as what touches one. So hosts that do not model
    their NUMA nodes are not judged by them.
    """
    found = list(positions)
    return tuple([max(1, len({at[level] for at in found} - {None})) for level in range(levels)])


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

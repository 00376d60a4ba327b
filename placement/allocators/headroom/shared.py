"""How much can be drawn from pools that several demands share: maximum flow by augmenting paths."""

from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import pairwise


def drawn(wanted: Mapping[frozenset[int], int], room: Mapping[int, int]) -> int:
    """Return how many units can be drawn when every demand is for one unit.

    O(sets x pools) per path. Paths are few, as each exhausts a set or a pool.

    Args:
        wanted: the pools that demands may draw from -> how many such demands there are.
        room: pool -> its units.

    >>> drawn({frozenset({1}): 2, frozenset({1, 2}): 3}, {1: 2, 2: 2})
    4
    """
    waiting, left = dict(wanted), dict(room)
    given: dict[tuple[frozenset[int], int], int] = {}
    while (path := _path(waiting, left, given)) is not None:
        moved = min([waiting[path[0][0]], left[path[-1][1]], *[given[swap] for swap in _swaps(path)]])
        waiting[path[0][0]] -= moved
        left[path[-1][1]] -= moved
        for swap in _swaps(path):
            given[swap] -= moved
        for step in path:
            given[step] = given.get(step, 0) + moved
    return sum(wanted.values()) - sum(waiting.values())


DrawingPath = list[tuple[frozenset[int], int]]
"""(set of pools, the pool it draws from), step by step: each takes over what the next one gives up for another pool."""


def _swaps(path: DrawingPath) -> Iterable[tuple[frozenset[int], int]]:
    """Return what is given up along a path."""
    return [(after[0], before[1]) for before, after in pairwise(path)]


def _path(
    waiting: Mapping[frozenset[int], int], left: Mapping[int, int], given: Mapping[tuple[frozenset[int], int], int]
) -> DrawingPath | None:
    """Return the shortest path from an unmet demand to a pool with units left."""
    queue: deque[tuple[AbstractSet[int], DrawingPath]] = deque(
        [(pools, []) for pools, number in waiting.items() if number]
    )
    seen: set[int] = set()
    while queue:
        pools, path = queue.popleft()
        for pool in sorted(pools - seen):
            seen.add(pool)
            step = [*path, (frozenset(pools), pool)]
            if left.get(pool, 0):
                return step
            queue += [(other, step) for (other, drawn_from), number in given.items() if drawn_from == pool and number]
    return None

"""Headroom that needs no search: identical slots spread over places, and units drawn from pools that demands share."""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

MAX_SETS = 6
"""With more distinct sets of places than this, not all combinations of slots are checked."""


class Spread:
    """The identical slots of one request, each with the places that it may use.

    Args:
        rows: for each slot its places, by number.
        each: for each place how many slots of one copy it may take.

    >>> pairs = Spread([(0, 1, 2), (0, 1, 2)], each=(1, 1, 1))
    >>> pairs.copies((5, 1, 1)), pairs.copies((2, 2, 2))
    (2, 3)
    """

    __slots__ = ("_each", "_together", "is_exact")

    def __init__(self, rows: Sequence[Collection[int]], each: Sequence[int]) -> None:
        sets = Counter([frozenset(row) for row in rows])
        self.is_exact = len(sets) <= MAX_SETS
        """Whether all combinations of slots are checked; otherwise the result is only an upper bound."""
        unions = _unions([*sets]) if self.is_exact else {*sets, frozenset[int]().union(*sets)}
        self._each = tuple(each)
        self._together = [
            (sum([slots for places, slots in sets.items() if places <= union]), tuple(sorted(union)))
            for union in unions
        ]

    def copies(self, room: Sequence[int]) -> int:
        """Return how many copies fit, given how many slots each place can take."""
        return min([self._copies_of(slots, places, room) for slots, places in self._together])

    def _copies_of(self, slots: int, places: Sequence[int], room: Sequence[int]) -> int:
        fitting, before = sum([room[place] for place in places]) // slots, -1
        # The estimate only shrinks and never drops below the answer, so its first fixed point is the largest solution.
        while fitting != before:
            before = fitting
            fitting = sum([min(room[place], before * self._each[place]) for place in places]) // slots
        return fitting


def _unions(sets: Sequence[frozenset[int]]) -> set[frozenset[int]]:
    found: set[frozenset[int]] = set()
    for one in sets:
        found |= {one, *[one | other for other in found]}
    return found


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

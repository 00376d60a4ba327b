"""Identical slots spread over places of limited room: a closed form, exact.

``n`` copies of a request can be placed if and only if, for every set T of its slots, the places that T may use have
room: ``|T| n <= sum of min(room, n each)`` over these places. ``room`` is how many slots a place can take in all,
``each`` how many of one copy. This is Hall's condition for slots that are needed n times each; by Koenig's edge
colouring theorem for bipartite graphs, the result divides into n copies, none with more than ``each`` in one place.
"""

from collections import Counter
from collections.abc import Collection, Sequence

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

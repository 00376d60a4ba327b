"""What is known of a tree before it is composed: in how few places so many providers of it can be."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.candidates.compose.given import Given
from placement.candidates.frontier import Key
from placement.candidates.packing import TreePacking
from placement.candidates.ranking import MAX_SCORE, Ranking, Shared, TreeScores
from placement.domain.amounts import ResourceAmounts
from placement.domain.places import Position

Locator = int | None
"""The provider that tells where another one is: itself if it is the anchor of a place, or else its parent."""


class PlaceSizes(NamedTuple):
    """How the providers of a tree that can serve something lie.

    Args:
        supply: how many there are.
        levels: for each level how many lie in no place, then how many in each place, the most first.
    """

    supply: int
    levels: tuple[tuple[int, ...], ...]


def place_sizes(
    options: Sequence[tuple[int, Locator]], positions: Mapping[Locator, Position], *, levels: int
) -> dict[int, PlaceSizes]:
    """Return for each tree how its providers lie; trees that are alike have the same object.

    Args:
        options: (root, locator) for each provider that can serve.
        positions: where each locator is.
        levels: how many levels there are.

    >>> at = {7: (1, 7), 8: (1, 8), 9: (2, 9)}
    >>> place_sizes([(0, 7), (0, 7), (0, 8), (0, 9)], at, levels=2)
    {0: PlaceSizes(supply=4, levels=((0, 3, 1), (0, 2, 1, 1)))}
    """
    roots = [root for root, _locator in options]
    locators = [locator for _root, locator in options]
    columns = []
    for level in range(levels):
        at = {locator: position[level] for locator, position in positions.items()}
        columns.append(_sizes_by_root(Counter(zip(roots, map(at.__getitem__, locators), strict=True))))
    known: dict[PlaceSizes, PlaceSizes] = {}  # Hosts of a cloud are much alike.
    found = [(root, PlaceSizes(n, tuple([column[root] for column in columns]))) for root, n in Counter(roots).items()]
    return {root: known.setdefault(sizes, sizes) for root, sizes in found}


def _sizes_by_root(sizes: Mapping[tuple[int, int | None], int]) -> dict[int, tuple[int, ...]]:
    rows: dict[int, list[int]] = defaultdict(list)
    free: dict[int, int] = {}
    for (root, place), size in sizes.items():
        if place is None:
            free[root] = size
        else:
            rows[root].append(size)
    return {
        root: (free.get(root, 0), *sorted(rows[root], reverse=True)) if root in rows else (free[root],)
        for root in rows.keys() | free.keys()
    }


def fewest_places(sizes: PlaceSizes, number: int) -> Counts | None:
    """Return a bound on the places of each level that so many different providers touch; None if there are less.

    What is in no place costs nothing.

    >>> fewest_places(PlaceSizes(4, ((0, 3, 1), (0, 2, 1, 1))), 3)
    (1, 2)
    """
    if sizes.supply < number:
        return None
    return tuple([fewest(places, number - free) for free, *places in sizes.levels])


def fewest(sizes: Collection[float], number: float) -> int:
    """Return how many of the first places it takes for a number of providers, at least 1.

    >>> fewest([2, 1, 1], 3), fewest([2, 1], 0)
    (2, 1)
    """
    needed = 0
    for size in sizes:
        if number <= 0:
            break
        number -= size
        needed += 1
    return max(1, needed)


class BoundedScores(TreeScores):
    """The scores of trees for one request, lowered by what is known of how compact anything in them can be."""

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        known: Iterable[str] = (),
        packing: TreePacking | None = None,
        *,
        shared: Shared | None = None,
    ) -> None:
        super().__init__(requested, ranking, known, packing, shared=shared)
        self._least: Mapping[int, Counts] = {}
        self._highest: dict[int, float] = {}
        self.falls_short = False
        """Whether anything that was composed lost by the places that it touches."""

    def bound(self, least: Mapping[int, Counts]) -> None:
        """Take note, by the roots of trees, of how few places of each level are touched at least."""
        self._least = least

    def keys(self, sums: Collection[Sequence[int]]) -> list[Key]:
        """Return the keys of trees before they are composed: with the highest scores that they can have."""
        return self.bounded(super().keys(sums))

    def bounded(self, keys: Collection[Key]) -> list[Key]:
        """Return keys that say nothing of places, lowered by what is known of these."""
        self._highest.update([(root, below) for _fails, below, root in keys])
        lost = {counts: self.lost(counts) for counts in {*self._least.values(), ()}}
        least = self._least.get
        return [(fails, below + lost[least(root, ())], root) for fails, below, root in keys]

    def lowered(self, key: Key, counts: Counts) -> Key:
        """Return the key of one tree lowered by how few places are touched there at least."""
        fails, below, root = key
        # A key that was not made here says nothing of places yet, and what is composed is judged by that.
        return max(key, (fails, self._highest.setdefault(root, below) + self.lost(counts), root))

    def negated_score(self, key: Key, counts: Counts) -> float:
        """Return the negated score of something that touches so many places of a tree with a key."""
        _fails, below, root = key
        lost = self.lost(counts)
        self.falls_short = self.falls_short or lost > 0
        # A key that was not made here is no bound on places yet.
        return self._highest.get(root, below) + lost

    def key_of(self, row: Sequence[int], given: Given, counts: Counts) -> Key:
        """Return the key of something that was composed."""
        self.falls_short = self.falls_short or self.lost(counts) > 0
        return super().key_of(row, given, counts)


class ScoresByCount(BoundedScores):
    """The scores of trees for a request that takes more where there is more: known only of what was composed.

    Args:
        requested: what is asked for at least.
        ranking: what is best.
        known: every class that providers may have.
        packing: what the request does to devices.
        shared: what others may give at least.
    """

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        known: Iterable[str] = (),
        packing: TreePacking | None = None,
        *,
        shared: Shared | None = None,
    ) -> None:
        super().__init__(requested, ranking, known, packing, shared=shared)
        self._requested = requested
        self._of_amounts = cache(lambda amounts: TreeScores(dict(amounts), ranking, known, packing, shared=shared))

    def keys(self, sums: Collection[Sequence[int]]) -> list[Key]:
        """Return keys that say no more than the roots of trees."""
        return [(False, -MAX_SCORE, row[0]) for row in sums]

    def of_amounts(self, amounts: ResourceAmounts) -> TreeScores:
        """Return the scores of what takes so much in all."""
        return self._of_amounts(tuple((name, amounts[name]) for name in self._requested))

"""Bounds on the score of a tree before it is composed: how few places a number of its providers can lie in."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.candidates.fragmentation import TreeFragmentation
from placement.candidates.frontier import Key
from placement.candidates.ranking import MAX_SCORE, OwnAmounts, Ranking, Shared, TreeScores
from placement.candidates.serving import Serving
from placement.cloud.derived import KeptInState
from placement.cloud.providers import Ints
from placement.domain.places import Layout, Position
from placement.domain.quantities import ResourceAmounts

CountedDemands = Sequence[tuple[int, int]]
"""(demand, number of different providers), for demands that want more than one provider."""

Locator = int | None
"""The provider whose position another one has: the provider itself if it anchors a place, its parent otherwise."""


class PlaceSizes(NamedTuple):
    """How the providers of a tree that can serve a demand spread over its places.

    Args:
        supply: how many there are.
        levels: for each level how many lie in no place, then how many in each place, in descending order.
    """

    supply: int
    levels: tuple[tuple[int, ...], ...]


SizesByDemand = tuple[PlaceSizes, ...]
"""How one tree's providers spread, for each of some demands. Neither the numbers wanted nor what is best matter."""


def place_sizes(
    options: Sequence[tuple[int, Locator]], positions: Mapping[Locator, Position], *, levels: int
) -> dict[int, PlaceSizes]:
    """Return for each tree how its providers spread over places; equal results are one object.

    Args:
        options: (root, locator) of each provider that can serve.
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
    distinct: dict[PlaceSizes, PlaceSizes] = {}  # The hosts of a cloud are much alike.
    by_root = [(root, PlaceSizes(n, tuple([column[root] for column in columns]))) for root, n in Counter(roots).items()]
    return {root: distinct.setdefault(sizes, sizes) for root, sizes in by_root}


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
    """Return a lower bound on the places of each level that ``number`` providers touch; None if there are fewer.

    Providers in no place are free.

    >>> fewest_places(PlaceSizes(4, ((0, 3, 1), (0, 2, 1, 1))), 3)
    (1, 2)
    """
    if sizes.supply < number:
        return None
    return tuple([fewest(places, number - free) for free, *places in sizes.levels])


def fewest(sizes: Collection[float], number: float) -> int:
    """Return how many of the sizes, first to last, it takes to reach ``number``: at least 1.

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
    """The scores of trees for one request, lowered by bounds on how compact any candidate in them can be."""

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        known: Iterable[str] = (),
        fragmentation: TreeFragmentation | None = None,
        *,
        shared: Shared | None = None,
        varies: bool = False,
    ) -> None:
        super().__init__(requested, ranking, known, fragmentation, shared=shared, varies=varies)
        self._least: Mapping[int, Counts] = {}
        self._if_compact: dict[int, float] = {}
        """Root -> the negated score of a tree whose best candidate is as compact as can be."""
        self.falls_short = False
        """Whether anything composed so far has lost points for the places it touches."""

    def bound(self, least: Mapping[int, Counts]) -> None:
        """Note, by root, a lower bound on the places of each level that are touched in each tree."""
        self._least = least

    def keys(self, sums: Collection[Sequence[int]]) -> list[Key]:
        """Return the keys of trees from before composing: with the highest scores that they can have."""
        return self.bounded(super().keys(sums))

    def bounded(self, keys: Collection[Key]) -> list[Key]:
        """Lower the scores in keys that do not account for places yet, by the known bounds."""
        self._if_compact.update([(root, negated) for _fails, negated, root in keys])
        lost = {counts: self.lost(counts) for counts in {*self._least.values(), ()}}
        least = self._least.get
        return [(fails, negated + lost[least(root, ())], root) for fails, negated, root in keys]

    def note(self, counts: Counts) -> None:
        """Note how many places a composed result touches."""
        self.falls_short = self.falls_short or self.lost(counts) > 0

    def negated_score(self, key: Key, counts: Counts) -> float:
        """Return the negated score of a result in the tree of a key, given how many places it touches."""
        _fails, negated, root = key
        self.note(counts)
        # A key that was not made here has no bound on places in it.
        return self._if_compact.get(root, negated) + self.lost(counts)

    def key_of(self, row: Sequence[int], given: OwnAmounts, counts: Counts) -> Key:
        """Return the key of a composed result."""
        self.note(counts)
        return super().key_of(row, given, counts)


class ScoresByCount(BoundedScores):
    """The scores of trees for a request that takes more where there is more: of trees there are only bounds.

    Args:
        requested: the least that is asked for.
        ranking: how to order trees and candidates.
        known: every class that providers may have.
        fragmentation: what the request does to devices.
        shared: what sharing providers may serve at least.
    """

    def __init__(
        self,
        requested: Mapping[str, int],
        ranking: Ranking,
        known: Iterable[str] = (),
        fragmentation: TreeFragmentation | None = None,
        *,
        shared: Shared | None = None,
    ) -> None:
        super().__init__(requested, ranking, known, fragmentation, shared=shared, varies=True)
        self._requested = requested
        self._of_amounts = cache(
            lambda amounts: TreeScores(dict(amounts), ranking, known, fragmentation, shared=shared, varies=True)
        )

    def keys(self, sums: Collection[Sequence[int]]) -> list[Key]:
        """Return keys that tell trees apart by their roots alone."""
        return [(False, -MAX_SCORE, row[0]) for row in sums]

    def of_amounts(self, amounts: ResourceAmounts) -> TreeScores:
        """Return the scores of a result that takes these amounts in all."""
        return self._of_amounts(tuple((name, amounts[name]) for name in self._requested))


def least_places(
    serving: Serving,
    wanted: CountedDemands,
    *,
    levels: Sequence[int | None],
    kept: KeptInState,
) -> dict[int, Counts] | None:
    """Return, for each tree with enough providers, a lower bound on the places touched at each level.

    None if other trees share such providers, because a tree alone does not decide then.

    Args:
        serving: finds who can serve.
        wanted: the counted demands.
        levels: the trait ids of the levels, outermost first, None for one that does not exist.
        kept: keeps how providers are distributed over places.
    """
    demands, numbers = [demand for demand, _number in wanted], [number for _demand, number in wanted]
    if any(serving.sharing.options[demand] for demand in demands):
        return None
    read = partial(_sizes, serving, demands=demands, levels=levels)
    name = serving.signature, tuple(demands), tuple(levels)
    sizes = kept.facts(name, read)
    least = {of_tree: _least(of_tree, numbers) for of_tree in {*sizes.values()}}  # Hosts have few distinct sizes.
    return {root: counts for root, of_tree in sizes.items() if (counts := least[of_tree]) is not None}


def _sizes(
    serving: Serving, roots: Collection[int] | None, *, demands: Sequence[int], levels: Sequence[int | None]
) -> dict[int, SizesByDemand]:
    """Return how each tree's providers for some demands are distributed over places, if each demand has any."""
    providers, at = serving.columns.providers, None
    if roots is not None:
        at = providers.positions_of_trees(roots)
    anchors = serving.anchors(levels, at)
    own = [serving.own_providers(serving.plan.demands[demand], at) for demand in demands]
    standing = [_standing(serving, of_demand, anchors.level_bits.keys()) for of_demand in own]
    among = {locator for of_demand in standing for _root, locator in of_demand if locator is not None}
    above = providers.with_ancestors(providers.positions(sorted(among | anchors.level_bits.keys())))
    layout = Layout(providers.parents_of(above), *anchors, levels=len(levels))
    positions = layout.positions_of(among, layout.inside(among))
    positions_of = dict[Locator, Position]([(None, (None,) * len(levels)), *positions.items()])
    sizes = [place_sizes(of_demand, positions_of, levels=len(levels)) for of_demand in standing]
    return {root: tuple([of_demand[root] for of_demand in sizes]) for root in set(sizes[0]).intersection(*sizes[1:])}


def _standing(serving: Serving, at: Ints, anchors: Collection[int]) -> list[tuple[int, Locator]]:
    """Return the root of each provider, and whose position it has: its own if it anchors a place, else its parent's."""
    providers = serving.columns.providers
    roots = providers.roots[providers.trees[at]].tolist()
    parents = providers.parents_of(at)
    ids = providers.ids[at].tolist()
    return [(root, id_ if id_ in anchors else parents[id_]) for root, id_ in zip(roots, ids, strict=True)]


def _least(sizes: SizesByDemand, numbers: Sequence[int]) -> Counts | None:
    counts = [fewest_places(of_demand, number) for of_demand, number in zip(sizes, numbers, strict=True)]
    enough = [of_demand for of_demand in counts if of_demand is not None]
    return tuple(map(max, zip(*enough, strict=True))) if len(enough) == len(counts) else None

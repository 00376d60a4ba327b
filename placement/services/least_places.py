"""The fewest places in which each tree of a cloud can serve a request; reads far less than composing would."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial

from placement.allocators.compactness import Counts
from placement.candidates.bounds import Locator, SizesByDemand, fewest_places, place_sizes
from placement.domain.places import Position
from placement.services.planner.place_layout import all_places
from placement.services.tree_fact_cache import TreeFactCache
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.narrowing import Narrowing
from placement.store.search.serving import DEMANDS, PARENT, PROVIDER, ROOT

CountedDemands = Sequence[tuple[int, int]]
"""(demand, number of different providers), for demands that want more than one provider."""


def least_places(
    tx: Transaction,
    narrowing: Narrowing,
    wanted: CountedDemands,
    *,
    levels: Sequence[int | None],
    cache: TreeFactCache[SizesByDemand] | None,
) -> dict[int, Counts] | None:
    """Return, for each tree with enough providers, a lower bound on the places touched at each level.

    None if other trees share such providers, because a tree alone does not decide then.

    Args:
        tx: the transaction.
        narrowing: finds the trees that can serve.
        wanted: the counted demands.
        levels: the trait ids of the levels, outermost first, None for one that does not exist.
        cache: a cache, shared by requests, of how providers are distributed over places; None for no cache.
    """
    demands, numbers = [demand for demand, _number in wanted], [number for _demand, number in wanted]
    if narrowing.are_shared(demands):
        return None
    read = partial(_sizes, tx, narrowing, demands=demands, levels=levels)
    name, found = narrowing.signature, None
    if cache is not None and name is not None:
        found = cache.in_snapshot(tx, (name, tuple(demands), tuple(levels)), read)
    sizes = read(None) if found is None else found
    least = {of: _least(of, numbers) for of in {*sizes.values()}}  # The hosts of a cloud have few distinct sizes.
    return {root: counts for root, of in sizes.items() if (counts := least[of]) is not None}


def _sizes(
    tx: Transaction,
    narrowing: Narrowing,
    roots: Collection[int] | None,
    *,
    demands: Sequence[int],
    levels: Sequence[int | None],
) -> dict[int, SizesByDemand]:
    """Return how each tree's providers for some demands are distributed over places, if each demand has any."""
    serving = narrowing.own_providers(demands, roots)
    anchors = all_places(tx, levels, roots)
    standing: dict[int, list[tuple[int, Locator]]] = defaultdict(list)
    served = serving.demands
    number, root, provider, parent = serving.columns.at(DEMANDS, ROOT, PROVIDER, PARENT)
    for row in serving.rows:
        where = row[root], row[provider] if row[provider] in anchors.level_bits else row[parent]
        for demand in served[row[number]]:
            standing[demand].append(where)
    among = {one for of_demand in standing.values() for _root, one in of_demand if one is not None}
    positions = anchors.positions_of(tx, among, serving.roots())
    known = dict[Locator, Position]([(None, (None,) * len(levels)), *positions.items()])
    found = [place_sizes(standing[demand], known, levels=len(levels)) for demand in demands]
    return {one: tuple([of[one] for of in found]) for one in set(found[0]).intersection(*found[1:])}


def _least(sizes: SizesByDemand, numbers: Sequence[int]) -> Counts | None:
    counts = [fewest_places(of, number) for of, number in zip(sizes, numbers, strict=True)]
    enough = [one for one in counts if one is not None]
    return tuple(map(max, zip(*enough, strict=True))) if len(enough) == len(counts) else None

"""In how few places a request can be served in each tree of a cloud; far less is read for it than for composing."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial

from placement.allocators.compactness import Counts
from placement.candidates.bounds import Locator, fewest_places, place_sizes
from placement.domain.places import Position
from placement.services.place_size_cache import PlaceSizeCache, SizesByDemand
from placement.services.planner.place_layout import all_places
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.narrowing import Narrowing
from placement.store.search.serving import DEMAND, PARENT, PROVIDER, ROOT

CountedDemands = Sequence[tuple[int, int]]
"""(demand, how many different providers of it), for demands of which more than one provider is wanted."""


def least_places(
    tx: Transaction,
    narrowing: Narrowing,
    wanted: CountedDemands,
    *,
    levels: Sequence[int | None],
    kept: PlaceSizeCache | None,
) -> dict[int, Counts] | None:
    """Return for each tree that has enough providers how few places of each level are touched at least.

    None if other trees share such providers, so that it cannot be told from a tree alone.

    Args:
        tx: the transaction.
        narrowing: which trees can serve.
        wanted: what is counted.
        levels: the ids of the traits of levels, outermost first, None for one that does not exist.
        kept: how providers lie, as far as it is kept from request to request.
    """
    demands, numbers = [demand for demand, _number in wanted], [number for _demand, number in wanted]
    if narrowing.are_shared(demands):
        return None
    read = partial(_sizes, tx, narrowing, demands=demands, levels=levels)
    name, found = narrowing.signature, None
    if kept is not None and name is not None:
        found = kept.in_snapshot(tx, (name, tuple(demands), tuple(levels)), read)
    sizes = read(None) if found is None else found
    least = {of: _least(of, numbers) for of in {*sizes.values()}}  # Hosts of a cloud are much alike.
    return {root: counts for root, of in sizes.items() if (counts := least[of]) is not None}


def _sizes(
    tx: Transaction,
    narrowing: Narrowing,
    roots: Collection[int] | None,
    *,
    demands: Sequence[int],
    levels: Sequence[int | None],
) -> dict[int, SizesByDemand]:
    """Return how the providers of each tree lie that can serve demands, where there are any for each."""
    serving = narrowing.own_providers(demands, roots)
    anchors = all_places(tx, levels, roots)
    standing: dict[int, list[tuple[int, Locator]]] = defaultdict(list)
    demand, root, provider, parent = serving.columns.at(DEMAND, ROOT, PROVIDER, PARENT)
    for row in serving.rows:
        standing[row[demand]].append((row[root], row[provider] if row[provider] in anchors.level_bits else row[parent]))
    among = {one for of_demand in standing.values() for _root, one in of_demand if one is not None}
    positions = anchors.positions_of(tx, among, serving.roots())
    known = dict[Locator, Position]([(None, (None,) * len(levels)), *positions.items()])
    found = [place_sizes(standing[demand], known, levels=len(levels)) for demand in demands]
    return {one: tuple([of[one] for of in found]) for one in set(found[0]).intersection(*found[1:])}


def _least(sizes: SizesByDemand, numbers: Sequence[int]) -> Counts | None:
    counts = [fewest_places(of, number) for of, number in zip(sizes, numbers, strict=True)]
    enough = [one for one in counts if one is not None]
    return tuple(map(max, zip(*enough, strict=True))) if len(enough) == len(counts) else None

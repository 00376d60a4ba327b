"""In how few places a request can be served in each tree of a cloud; far less is read for it than for composing."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from placement.allocators.compactness import Counts
from placement.candidates.bounds import Locator, least_counts
from placement.domain.places import Layout, Position, level_bits
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.narrowing import Narrowing
from placement.store.search.planner_trees import parents_of, places
from placement.store.search.serving import DEMAND, PARENT, PROVIDER, ROOT

CountedDemands = Sequence[tuple[int, int]]
"""(demand, how many different providers of it), for demands of which more than one provider is wanted."""


def least_places(
    tx: Transaction, narrowing: Narrowing, wanted: CountedDemands, levels: Sequence[int | None]
) -> dict[int, Counts] | None:
    """Return for each tree that has enough providers how few places of each level are touched at least.

    None if other trees share such providers, so that it cannot be told from a tree alone.

    Args:
        tx: the transaction.
        narrowing: which trees can serve.
        wanted: what is counted.
        levels: the ids of the traits of levels, outermost first, None for one that does not exist.
    """
    serving = narrowing.own_providers(sorted({demand for demand, _number in wanted}))
    if serving is None:
        return None
    rows = places(tx, [trait for trait in levels if trait is not None])
    bits_of = {trait: level_bits({trait}, levels) for trait in levels if trait is not None}
    anchors: dict[int, int] = defaultdict(int)
    for anchor, _parent, _root, trait in rows:
        anchors[anchor] |= bits_of[trait]
    homes = {anchor: root for anchor, _parent, root, _trait in rows}
    parents = {anchor: parent for anchor, parent, _root, _trait in rows}
    standing: dict[int, list[tuple[int, Locator]]] = defaultdict(list)
    demand, root, provider, parent = serving.columns.at(DEMAND, ROOT, PROVIDER, PARENT)
    for row in serving.rows:
        standing[row[demand]].append((row[root], row[provider] if row[provider] in anchors else row[parent]))
    among = {one for of_demand in standing.values() for _root, one in of_demand if one is not None}
    _complete(tx, parents, among, serving.roots())
    layout = Layout(parents, anchors, homes, levels=len(levels))
    known = layout.positions_of(among, layout.inside(among))
    positions: dict[Locator, Position] = {None: (None,) * len(levels)} | known
    found = [least_counts(standing[demand], number, positions, levels=len(levels)) for demand, number in wanted]
    if len(found) == 1:
        return found[0]
    common = set(found[0]).intersection(*found[1:])
    return {root: tuple(map(max, *[one[root] for one in found])) for root in common}


def _complete(
    tx: Transaction, parents: dict[int, int | None], providers: Collection[int], roots: Collection[int]
) -> None:
    """Add the parents of providers and of all above them: what stands between places is seldom there."""
    frontier = set(providers) - set(roots)
    while frontier:
        parents.update(parents_of(tx, frontier - parents.keys()))
        above = {parents.get(provider) for provider in frontier}
        frontier = {provider for provider in above if provider is not None} - set(roots)

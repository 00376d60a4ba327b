"""In how few places a request can be served in each tree of a cloud; far less is read for it than for composing."""

from collections import defaultdict
from collections.abc import Sequence

from placement.allocators.compactness import Counts
from placement.candidates.bounds import Locator, least_counts
from placement.domain.places import Position
from placement.services.planner.place_layout import all_places
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.narrowing import Narrowing
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
    anchors = all_places(tx, levels)
    standing: dict[int, list[tuple[int, Locator]]] = defaultdict(list)
    demand, root, provider, parent = serving.columns.at(DEMAND, ROOT, PROVIDER, PARENT)
    for row in serving.rows:
        standing[row[demand]].append((row[root], row[provider] if row[provider] in anchors.level_bits else row[parent]))
    among = {one for of_demand in standing.values() for _root, one in of_demand if one is not None}
    positions = anchors.positions_of(tx, among, serving.roots())
    known = dict[Locator, Position]([(None, (None,) * len(levels)), *positions.items()])
    found = [least_counts(standing[demand], number, known, levels=len(levels)) for demand, number in wanted]
    if len(found) == 1:
        return found[0]
    common = set(found[0]).intersection(*found[1:])
    return {root: tuple(map(max, *[one[root] for one in found])) for root in common}

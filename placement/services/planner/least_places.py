"""In how few places a request can be served in each tree of a cloud; far less is read for it than for composing."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from placement.allocators.compactness import Counts
from placement.candidates.bounds import Spot, least_counts
from placement.domain.planner_tree import Position, positions_of
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.narrowing import Narrowing
from placement.store.search.planner_trees import parents_of, places
from placement.store.search.serving import DEMAND, PARENT, PROVIDER, ROOT

Wanted = Sequence[tuple[int, int]]
"""(kind, how many different providers of it), for kinds of which more than one provider is wanted."""


def least_places(
    tx: Transaction, narrowing: Narrowing, wanted: Wanted, levels: Sequence[int | None]
) -> dict[int, Counts] | None:
    """Return for each tree that has enough providers how few places of each level are touched at least.

    None if other trees share such providers, so that it cannot be told from a tree alone.

    Args:
        tx: the transaction.
        narrowing: which trees can serve.
        wanted: what is counted.
        levels: the ids of the traits of levels, outermost first, None for one that does not exist.
    """
    serving = narrowing.own_providers(sorted({kind for kind, _number in wanted}))
    if serving is None:
        return None
    marks, parents = _marked(tx, levels)
    spots: dict[int, list[tuple[int, Spot]]] = defaultdict(list)
    demand, root, provider, parent = serving.columns.at(DEMAND, ROOT, PROVIDER, PARENT)
    for row in serving.rows:
        spots[row[demand]].append((row[root], row[provider] if row[provider] in marks else row[parent]))
    among = {spot for of_kind in spots.values() for _root, spot in of_kind if spot is not None}
    _complete(tx, parents, among, serving.roots())
    known = positions_of(among, parents, marks, len(levels))
    positions: dict[Spot, Position] = {None: (None,) * len(levels)} | known
    found = [least_counts(spots[kind], number, positions, levels=len(levels)) for kind, number in wanted]
    if len(found) == 1:
        return found[0]
    common = set(found[0]).intersection(*found[1:])
    return {root: tuple(map(max, *[one[root] for one in found])) for root in common}


def _marked(tx: Transaction, levels: Sequence[int | None]) -> tuple[dict[int, tuple[int, ...]], dict[int, int | None]]:
    """Return the levels that providers stand for, and the parents of these providers."""
    level_of = {trait: (level,) for level, trait in enumerate(levels) if trait is not None}
    marks: dict[int, tuple[int, ...]] = {}
    rows = places(tx, list(level_of))
    for provider, _parent, trait in rows:
        known = marks.get(provider)
        marks[provider] = level_of[trait] if known is None else (*known, *level_of[trait])
    return marks, {provider: parent for provider, parent, _trait in rows}


def _complete(
    tx: Transaction, parents: dict[int, int | None], providers: Collection[int], roots: Collection[int]
) -> None:
    """Add the parents of providers and of all above them: what stands between places is seldom there."""
    frontier = set(providers) - set(roots)
    while frontier:
        parents.update(parents_of(tx, frontier - parents.keys()))
        above = {parents.get(provider) for provider in frontier}
        frontier = {provider for provider in above if provider is not None} - set(roots)

"""The positions of providers for all trees at once: their places at each level, far less data than whole trees."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from placement.domain.places import Layout, Position, level_bits
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.planner_trees import parents_of, places


@dataclass(frozen=True, slots=True)
class AllPlaces:
    """All places of some levels, by anchor.

    Args:
        levels: the number of levels.
        level_bits: the levels of each anchor, the outermost as the lowest bit.
        root_of: the root of each anchor's tree.
        parents: the parent of each anchor.
    """

    levels: int
    level_bits: Mapping[int, int]
    root_of: Mapping[int, int]
    parents: Mapping[int, int | None]

    def positions_of(self, tx: Transaction, providers: Set[int], roots: Collection[int] = ()) -> dict[int, Position]:
        """Return the positions of providers. Takes a statement for each step towards the roots, until all is known."""
        parents, known = {**self.parents}, {*roots}
        frontier = {*providers} - known
        # Providers between places are rare.
        while frontier:
            parents.update(parents_of(tx, frontier - parents.keys()))
            above = {parents.get(provider) for provider in frontier}
            frontier = {provider for provider in above if provider is not None} - known
        layout = Layout(parents, self.level_bits, self.root_of, levels=self.levels)
        return layout.positions_of(providers, layout.inside(providers))


def all_places(tx: Transaction, levels: Sequence[int | None], roots: Collection[int] | None = None) -> AllPlaces:
    """Return the places of levels, given by trait id, outermost first; None stands for an unknown one.

    ``roots`` selects trees, no more than fit into a statement; None means all.
    """
    rows = places(tx, [trait for trait in levels if trait is not None], roots)
    bits_of = {trait: level_bits({trait}, levels) for trait in levels if trait is not None}
    bits: dict[int, int] = defaultdict(int)
    for anchor, _parent, _root, trait in rows:
        bits[anchor] |= bits_of[trait]
    root_of = {anchor: root for anchor, _parent, root, _trait in rows}
    return AllPlaces(len(levels), bits, root_of, {anchor: parent for anchor, parent, _root, _trait in rows})

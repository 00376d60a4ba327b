"""Read which places of many trees are in use: far less than their details, and often enough to rule them out."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from placement.candidates.compose.free_places import PlacesInUse, WantedFree
from placement.domain.tree import Tree
from placement.services.planner.nesting import Nesting
from placement.services.planner.place_layout import all_places
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import LISTED

LevelAnchors = Sequence[AbstractSet[int]]
"""For each level, the anchors of its places."""


class FreePlaces:
    """Finds the trees of a snapshot without a free place for an exclusive group.

    Args:
        tx: the transaction.
        wanted: what has to be free.
        levels: the ids of the traits of levels, outermost first, None for one that does not exist.
        nesting: knows what is in use.
    """

    def __init__(
        self,
        tx: Transaction,
        wanted: Sequence[WantedFree],
        levels: Sequence[int | None],
        nesting: Nesting,
    ) -> None:
        self._tx = tx
        self._wanted = wanted
        needed = {level for one in wanted for level in one.levels}
        self._levels = [trait if level in needed else None for level, trait in enumerate(levels)]
        self._nesting = nesting
        self._everywhere: LevelAnchors | None = None

    def lacking_in(self, trees: Sequence[Tree]) -> set[int]:
        """Return the roots of trees that provably have no such place."""
        if not trees or not self._wanted:
            return set()
        places = self.places_among({tree.root for tree in trees})
        return {tree.root for tree in trees if places.are_lacking(self._wanted, tree)}

    def places_among(self, roots: AbstractSet[int]) -> PlacesInUse:
        """Return the places in use in one or more trees."""
        return PlacesInUse(self._nesting.parents_in(roots), self._anchors(roots), self._nesting.in_use(roots))

    def _anchors(self, roots: AbstractSet[int]) -> LevelAnchors:
        """Return the anchors of the places at each level; those of many trees are read once, for all trees."""
        if len(roots) <= LISTED:
            return self._read(roots)
        if self._everywhere is None:
            self._everywhere = self._read(None)
        return self._everywhere

    def _read(self, roots: AbstractSet[int] | None) -> LevelAnchors:
        bits = all_places(self._tx, self._levels, roots).level_bits.items()
        return [{anchor for anchor, of in bits if of >> level & 1} for level in range(len(self._levels))]

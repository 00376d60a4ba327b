"""How the providers of trees are nested and which are in use: read once in a snapshot, however often it is asked."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from placement.domain.ancestry import Parents, with_all_above
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.parents import parents_in
from placement.store.search.planner_trees import in_use
from placement.store.search.ranges import LISTED, Extent


class Nesting:
    """The trees of one snapshot, as far as they were asked for.

    Args:
        tx: the snapshot.
        spared: providers that count as unused.
    """

    def __init__(self, tx: Transaction, *, spared: Collection[int] = ()) -> None:
        self._tx = tx
        self._spared = frozenset(spared)
        self._parents: dict[int, int | None] = {}
        self._in_use: set[int] = set()
        self._of_parents, self._of_use = _RootsRead(), _RootsRead()

    def parents_in(self, roots: AbstractSet[int]) -> Parents:
        """Return the parents of all providers of some trees; others may be included."""
        unknown = self._of_parents.without(roots)
        if unknown:
            self._parents |= parents_in(self._tx, Extent.around(unknown))
            self._of_parents.note(unknown)
        return self._parents

    def in_use(self, roots: AbstractSet[int]) -> AbstractSet[int]:
        """Return the providers of some trees on which, or below which, anything is in use; others may be included."""
        unknown = self._of_use.without(roots)
        if unknown:
            used = set(in_use(self._tx, unknown)) - self._spared
            self._in_use |= with_all_above(used, self.parents_in(roots))
            self._of_use.note(unknown)
        return self._in_use


class _RootsRead:
    """The roots of trees that were read, one by one or as a range of ids."""

    def __init__(self) -> None:
        self._listed: set[int] = set()
        self._ranges: list[range] = []

    def without(self, roots: AbstractSet[int]) -> AbstractSet[int]:
        """Return those of some roots that were not read."""
        unknown = roots - self._listed
        return {root for root in unknown if not any(root in one for one in self._ranges)}

    def note(self, roots: AbstractSet[int]) -> None:
        """Note roots that were read by one statement: beyond a number as a range, like ``Extent.around``."""
        if len(roots) > LISTED:
            self._ranges.append(range(min(roots), max(roots) + 1))
        else:
            self._listed |= roots

"""What all trees have and use in all, by class: columns that are brought from one state to the next.

A column is read once, when its class is first asked for. From then on the journal tells by how much sums have changed;
trees of which it does not tell all are read again. There is no lock here: ``tree_history`` has one.
"""

from array import array
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from placement.store.journal.changes import MOST_CHANGED, TreeChanges
from placement.store.search.scores import ABSENT, TreeSums

MUCH = 5
"""Where more than one of so many trees have changed, all are read, which costs less then: docs/scaling.md."""

LITTLE = 500
"""So few are always read alone."""


def is_much(changed: int, trees: int) -> bool:
    """Tell whether to begin anew with all trees costs less than to go on from what they were."""
    return changed > min(MOST_CHANGED, max(LITTLE, trees // MUCH))


class AskedSums(NamedTuple):
    """Which sums are asked for.

    Args:
        classes: the ids of the classes to sum up; ABSENT for one that does not exist.
        others: further classes: trees that have any of these come, too.
    """

    classes: Sequence[int]
    others: Sequence[int]

    @property
    def ids(self) -> frozenset[int]:
        """All classes that exist."""
        return frozenset([*self.classes, *self.others]) - {ABSENT}


class SumsByClass:
    """The sums of all trees in one state; classes and trees are told by their ids."""

    def __init__(self) -> None:
        self._columns: dict[int, _SumsOfClass] = {}
        self._roots = array("q")
        self._places: dict[int, int] = {}
        """Where in a column the tree of each root is."""
        self._unstocked: set[int] = set()
        """The roots of trees in which something is in use that there is no inventory of. It is in no sum."""
        self.unknown: set[int] = set()
        """The roots of trees that have to be read again."""

    @property
    def classes(self) -> AbstractSet[int]:
        """The classes that are known, in the order in which ``renew`` wants them."""
        return self._columns.keys()

    @property
    def are_little_known(self) -> bool:
        """Whether so much has to be read again that to read everything costs less."""
        return is_much(len(self.unknown), len(self._places))

    def follow(self, changes: TreeChanges) -> None:
        """Go on to the next state."""
        if not self._columns:
            return
        unknown, unstocked, column_of, place_of = self.unknown, self._unstocked, self._columns.get, self._places.get
        unknown |= changes.untold
        for steps, are_uses in ((changes.capacities, False), (changes.uses, True)):
            for root, class_id, more in steps:
                column = column_of(class_id)
                if column is None:
                    continue
                place = place_of(root)
                if place is None or not column.is_there[place] or root in unknown or root in unstocked:
                    unknown.add(root)
                elif are_uses:
                    column.used[place] += more
                else:
                    column.capacity[place] += more

    def add(self, classes: Sequence[int], rows: Collection[Sequence[Any]], unstocked: set[int]) -> None:
        """Add classes.

        Args:
            classes: which.
            rows: the sums of all trees that have any of them, as ``class_sums`` reads them.
            unstocked: the roots of those in which something is in use that there is no inventory of.
        """
        self._columns.update([(class_id, _SumsOfClass(len(self._places))) for class_id in classes])
        self._put(classes, rows)
        self._unstocked |= unstocked

    def renew(self, roots: frozenset[int], rows: Collection[Sequence[Any]], unstocked: set[int]) -> None:
        """Replace the sums of trees that were read again.

        Args:
            roots: theirs.
            rows: their sums of all classes; a tree that has nothing any more is not among them.
            unstocked: as in ``add``, of these trees.
        """
        classes = [*self._columns]
        nothing = [None] * 2 * len(classes)
        self._put(classes, [(root, *nothing) for root in roots.intersection(self._places)])
        self._put(classes, rows)
        self._unstocked = (self._unstocked - roots) | unstocked
        self.unknown -= roots

    def _put(self, classes: Sequence[int], rows: Collection[Sequence[Any]]) -> None:
        places = [self._place_of(row[0]) for row in rows]
        amounts = [*zip(*rows, strict=True)][1:]
        for class_id, capacities, uses in zip(classes, amounts, amounts[len(classes) :], strict=False):
            self._columns[class_id].put(places, capacities, uses)

    def _place_of(self, root: int) -> int:
        place = self._places.get(root)
        if place is None:
            place = self._places[root] = len(self._roots)
            self._roots.append(root)
            for column in self._columns.values():
                column.lengthen()
        return place

    def rows(self, asked: AskedSums, roots: Collection[int] | None, *, but: frozenset[int]) -> list[TreeSums]:
        """Return what ``tree_sums`` reads, of trees with some roots, or of all, and not with some others."""
        columns = [self._columns.get(class_id) for class_id in asked.classes]
        amounts: list[Sequence[int] | None] = [of.capacity if of else None for of in columns]
        amounts += [of.used if of else None for of in columns]
        known = [*filter(None, columns), *[self._columns[class_id] for class_id in asked.others]]
        there: list[Sequence[int]] = [of.is_there for of in known]
        among: Sequence[int] = self._roots
        if roots is not None or but:
            wanted = frozenset(self._places if roots is None else roots) - but
            among = [*filter(self._places.__contains__, wanted)]
            picked = _picker([*map(self._places.__getitem__, among)])
            amounts = [values and picked(values) for values in amounts]
            # Where all trees have a class, as they often do, nothing has to be looked up.
            there = [picked(flags) if 0 in flags else flags for flags in there]
        rows = zip(among, *[values or repeat(0) for values in amounts], strict=False)
        if any(0 not in flags for flags in there):
            return [*rows]
        return [*compress(rows, map(any, zip(*there, strict=True)))]


def _picker(places: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    """Return what picks the values at some places of a column."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: [values[place] for place in places]


class _SumsOfClass:
    """The sums of one class, tree by tree."""

    __slots__ = ("capacity", "is_there", "used")

    def __init__(self, trees: int) -> None:
        self.capacity = array("q", bytes(8 * trees))
        self.used = array("q", bytes(8 * trees))
        self.is_there = bytearray(trees)
        """Whether a tree has an inventory of the class. One that has none has and uses nothing."""

    def put(self, places: Sequence[int], capacities: Sequence[int | None], uses: Sequence[int | None]) -> None:
        """Note the sums of some trees; None for one that has no inventory."""
        for place, capacity, used in zip(places, capacities, uses, strict=True):
            self.is_there[place] = capacity is not None
            self.capacity[place], self.used[place] = capacity or 0, used or 0

    def lengthen(self) -> None:
        """Make room for another tree."""
        self.capacity.append(0)
        self.used.append(0)
        self.is_there.append(0)

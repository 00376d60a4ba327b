"""The capacity and usage of all trees, summed by class in columns that advance from one state to the next.

A column is read once, when its class is first asked for. From then on the journal supplies the differences; trees whose
changes it does not fully cover are read again. There is no lock here: ``tree_history`` has one.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from placement.store.journal.changes import MAX_CHANGED, SumStep, TreeChanges
from placement.store.search.scores import ABSENT, TreeSums

TREES_PER_CHANGED = 5
"""If more than one in this many trees has changed, reading all of them costs less: docs/scaling.md."""

ALWAYS_READ_ALONE = 500
"""Up to this many changed trees are read alone, however few trees there are."""


def reading_all_pays(changed: int, trees: int) -> bool:
    """Tell whether reading all trees costs less than updating the changed ones."""
    return changed > min(MAX_CHANGED, max(ALWAYS_READ_ALONE, trees // TREES_PER_CHANGED))


class AskedSums(NamedTuple):
    """The sums to return.

    Args:
        classes: the ids of the classes to sum; ABSENT for one that does not exist.
        others: further classes whose owners to include.
    """

    classes: Sequence[int]
    others: Sequence[int]

    @property
    def ids(self) -> frozenset[int]:
        """All classes that exist."""
        return frozenset([*self.classes, *self.others]) - {ABSENT}


class SumsByClass:
    """The sums of all trees in one state, by class id and root."""

    def __init__(self) -> None:
        self._columns: dict[int, _SumsOfClass] = {}
        self._roots = array("q")
        self._places: dict[int, int] = {}
        """The index of each root in the columns."""
        self._unstocked: set[int] = set()
        """The roots of trees with usage of a class without inventory. No sum includes it."""
        self.unknown: set[int] = set()
        """The roots of trees whose sums are stale."""

    @property
    def classes(self) -> AbstractSet[int]:
        """The known classes, in the order that ``renew`` expects."""
        return self._columns.keys()

    @property
    def are_little_known(self) -> bool:
        """Whether so many sums are stale that reading everything costs less."""
        return reading_all_pays(len(self.unknown), len(self._places))

    def follow(self, changes: TreeChanges) -> None:
        """Advance to the next state."""
        if not self._columns:
            return
        self.unknown |= changes.untold
        for class_id, column in self._columns.items():
            self._advance(column, column.capacity, changes.capacities.get(class_id, ()))
            self._advance(column, column.used, changes.uses.get(class_id, ()))

    def _advance(self, column: "_SumsOfClass", amounts: "array[int]", steps: Iterable[SumStep]) -> None:
        """Add steps to the amounts of a column. Trees whose sums they do not give are unknown from now on."""
        unknown, place_of, is_there = self.unknown, self._places.get, column.is_there
        doubtful = unknown | self._unstocked if self._unstocked else unknown
        for root, more in steps:
            place = place_of(root)
            if place is None or not is_there[place] or root in doubtful:
                unknown.add(root)
            else:
                amounts[place] += more

    def add(self, classes: Sequence[int], rows: Collection[Sequence[Any]], unstocked: set[int]) -> None:
        """Add columns.

        Args:
            classes: the ids of their classes.
            rows: the sums of all trees that have any of them, as ``class_sums`` reads them.
            unstocked: the roots of trees with usage of a class without inventory.
        """
        self._columns.update([(class_id, _SumsOfClass(len(self._places))) for class_id in classes])
        self._put(classes, rows)
        self._unstocked |= unstocked

    def renew(self, roots: frozenset[int], rows: Collection[Sequence[Any]], unstocked: set[int]) -> None:
        """Replace the sums of trees that were read again.

        Args:
            roots: their roots.
            rows: their sums of all classes; trees that no longer have any are missing.
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
        """Return what ``tree_sums`` reads of the trees with some roots, or of all, except for some."""
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
            # If all trees have a class, as is common, there is nothing to look up.
            there = [picked(flags) if 0 in flags else flags for flags in there]
        rows = zip(among, *[values or repeat(0) for values in amounts], strict=False)
        if any(0 not in flags for flags in there):
            return [*rows]
        return [*compress(rows, map(any, zip(*there, strict=True)))]


def _picker(places: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    """Return a function that picks some places of a column."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: [values[place] for place in places]


class _SumsOfClass:
    """The sums of one class, by tree."""

    __slots__ = ("capacity", "is_there", "used")

    def __init__(self, trees: int) -> None:
        self.capacity = array("q", bytes(8 * trees))
        self.used = array("q", bytes(8 * trees))
        self.is_there = bytearray(trees)
        """Whether a tree has inventory of the class. Without it, capacity and usage are 0."""

    def put(self, places: Sequence[int], capacities: Sequence[int | None], uses: Sequence[int | None]) -> None:
        """Store the sums of some trees; None for one without inventory."""
        for place, capacity, used in zip(places, capacities, uses, strict=True):
            self.is_there[place] = capacity is not None
            self.capacity[place], self.used[place] = capacity or 0, used or 0

    def lengthen(self) -> None:
        """Make room for another tree."""
        self.capacity.append(0)
        self.used.append(0)
        self.is_there.append(0)

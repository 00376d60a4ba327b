"""Small formulas over columns that count copies in all trees of a fleet at once."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from placement.allocators.headroom import ENDLESS, Spread
from placement.candidates.headroom.fleets import Cell

Column = list[int]
"""A number for each tree of a fleet, or for some of them."""

AmountsById = tuple[tuple[int, int], ...]
"""(class id, amount)."""


class FreeColumns(NamedTuple):
    """What is free in some trees of one shape, in a column for each cell; pools once for all trees."""

    trees: int
    free: Mapping[Cell, Sequence[int]]
    pools: Mapping[int, Mapping[int, int]]

    def cell(self, cell: Cell) -> Sequence[int]:
        """Return what is free of a class on a provider, or in a pool."""
        place, name = cell
        return self.free[cell] if place >= 0 else [self.pools[place][name]] * self.trees

    def room(self, place: int, amounts: AmountsById) -> Column:
        """Return how many times some amounts fit on a provider."""
        if not amounts:
            return [ENDLESS] * self.trees
        rooms = [[much // amount for much in self.cell((place, name))] for name, amount in amounts]
        return rooms[0] if len(rooms) == 1 else list(map(min, *rooms))


class FormulaPart(Protocol):
    """Something that bounds the number of copies."""

    def copies(self, columns: FreeColumns) -> Column:
        """Return how many copies this part of a request allows in each tree."""


class OneSlot(NamedTuple):
    """A slot that competes with no other: each of its providers serves as many copies as fit."""

    places: tuple[int, ...]
    amounts: AmountsById

    def copies(self, columns: FreeColumns) -> Column:
        """Return the sums over its providers."""
        return _summed([columns.room(place, self.amounts) for place in self.places], columns.trees)


class AlikeSlots:
    """Competing slots that ask the same: the room of each provider is shared out among them.

    Args:
        spread: the slots; its places are numbered in the order of ``places``.
        places: the providers.
        amounts: what each slot takes.
    """

    def __init__(self, spread: Spread, places: Sequence[int], amounts: AmountsById) -> None:
        self._spread = spread
        self._places = places
        self._amounts = amounts
        self._known: dict[tuple[int, ...], int] = {}

    def copies(self, columns: FreeColumns) -> Column:
        """Return how many copies can have all of their slots, memoised by room."""
        rooms = zip(*[columns.room(place, self._amounts) for place in self._places], strict=True)
        return [self._of(room) for room in rooms]

    def _of(self, room: tuple[int, ...]) -> int:
        found = self._known.get(room)
        if found is None:
            found = self._known[room] = self._spread.copies(room)
        return found


class SumOfClass(NamedTuple):
    """Slots that take different amounts of one class: all that is free of it bounds the copies."""

    places: tuple[int, ...]
    name: int
    amount: int

    def copies(self, columns: FreeColumns) -> Column:
        """Return the bound."""
        free = _summed([columns.cell((place, self.name)) for place in self.places], columns.trees)
        return [much // self.amount for much in free]


class Least(NamedTuple):
    """Parts of which every copy needs each."""

    parts: tuple[FormulaPart, ...]

    def copies(self, columns: FreeColumns) -> Column:
        """Return what the scarcest part allows."""
        found = [part.copies(columns) for part in self.parts]
        return found[0] if len(found) == 1 else list(map(min, *found)) if found else [ENDLESS] * columns.trees


class Total(NamedTuple):
    """Parts of which a copy needs one: the regions of a tree, in one of which it lies as a whole."""

    parts: tuple[FormulaPart, ...]

    def copies(self, columns: FreeColumns) -> Column:
        """Return what all of them allow together."""
        return _summed([part.copies(columns) for part in self.parts], columns.trees)


def _summed(columns: Sequence[Sequence[int]], trees: int) -> Column:
    if len(columns) == 1:
        return list(columns[0])
    return list(map(sum, zip(*columns, strict=True))) if columns else [0] * trees

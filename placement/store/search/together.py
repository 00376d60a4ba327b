"""Which demands of a plan are found by one read of their stock, and how a row tells which of them it serves.

Many groups of a request ask for different amounts of the same classes. Who has room for one of them has room for most
others, so a read of each would go through the same stock again and again and return each provider as often.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from placement.store.search.ranges import Scope
from placement.store.search.shapes import DemandShape, NarrowingShape

BITS = 16
"""How many demands are read together at most: each has a bit in the number of a row."""

DemandReads = tuple[tuple[int, ...], ...]
"""The demands of each read, by their indices in the plan."""


class ServedDemands(dict[int, tuple[int, ...]]):
    """The demands that a row serves, by its number: the number of the read, followed by a bit for each of its demands.

    Args:
        together: the demands of each read.

    >>> ServedDemands([(0, 2), (1,)])[(0 << BITS) + 0b10]
    (2,)
    """

    def __init__(self, together: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self._together = together

    def __missing__(self, number: int) -> tuple[int, ...]:
        read, bits = divmod(number, 1 << BITS)
        found = [demand for place, demand in enumerate(self._together[read]) if bits >> place & 1]
        demands = self[number] = tuple(found)
        return demands


def read_together(shape: NarrowingShape, demands: Iterable[int]) -> DemandReads:
    """Return some demands of a plan by the read that finds them."""
    return tuple(_reads(shape, demands))


def _reads(shape: NarrowingShape, demands: Iterable[int]) -> Iterator[tuple[int, ...]]:
    by_classes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for demand in demands:
        by_classes[shape.demands[demand].classes].append(demand)
    for alike in by_classes.values():
        joint = _joint(shape, alike)
        yield from [(demand,) for demand in alike if demand not in joint]
        yield from [tuple(joint[first : first + BITS]) for first in range(0, len(joint), BITS)]


def _joint(shape: NarrowingShape, alike: Sequence[int]) -> Sequence[int]:
    """Return which of the demands for the same classes to read together."""
    of = shape.demands
    if shape.with_fit_counts or not of[alike[0]].classes:
        return ()  # Fit counts differ from demand to demand.
    if shape.scope is not Scope.ALL:
        # In a few trees the owners of a trait are looked up one by one, which only a demand of its own allows.
        return [demand for demand in alike if not of[demand].is_selective and not _forbids(of[demand])]
    # One that names no trait reads all stock of its classes anyway; otherwise traits may be the faster way in.
    return () if all(of[demand].is_selective for demand in alike) else alike


def _forbids(demand: DemandShape) -> bool:
    return demand.forbidden or demand.forbidden_aggregates

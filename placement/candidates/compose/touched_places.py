"""How many places of each level the candidates of a tree can touch, and the constraint to touch exactly so many."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from placement.allocators.compactness import Counts
from placement.domain.places import Places
from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import Tree


def possible_counts(plan: Plan, tree: Tree) -> Iterator[Counts]:
    """Yield how many places of each level candidates may touch, in ascending order.

    Sums tell the fewest: three units left in each of two places are too little for four slots of two.
    """
    consuming = [slot for slot in plan.slots if slot.resources]
    loads = [*_loads(plan, tree, consuming)]
    reached = 0
    for provider in _providers(tree, consuming):
        reached |= tree.places.of.get(provider, 0)
    bounds = []
    for places in tree.places.levels:
        most = max(1, min(len(consuming), (reached & places).bit_count()))
        bounds.append(range(max([_fewest(asked, rooms, places) for asked, rooms in loads], default=1), most + 1))
    return product(*bounds)


def _loads(plan: Plan, tree: Tree, consuming: Sequence[Slot]) -> Iterator[tuple[float, Mapping[int, float]]]:
    """Yield what adds up: the total asked for, and the room for it by the places that it is in."""
    if plan.request.isolate:
        granular = [slot for slot in consuming if slot.is_granular]
        yield len(granular), _by_mask(tree, dict.fromkeys(_providers(tree, granular), 1.0))
    for name in plan.contended:
        asking = [(dict(slot.resources)[name], slot) for slot in consuming if name in dict(slot.resources)]
        amounts = sorted({amount for amount, _slot in asking})
        rooms = {provider: tree.room[provider, name] for provider in _providers(tree, [slot for _, slot in asking])}
        if len(amounts) > 1:
            yield sum([amount for amount, _slot in asking]), _by_mask(tree, rooms)
        # Three units left at each provider are of little use to slots of two.
        for least in amounts:
            larger = [slot for amount, slot in asking if amount >= least]
            times = {provider: rooms[provider] // least for provider in _providers(tree, larger)}
            yield len(larger), _by_mask(tree, times)


def _providers(tree: Tree, slots: Sequence[Slot]) -> set[int]:
    return {provider for demand in {slot.demand for slot in slots} for provider in tree.options[demand]}


def _by_mask(tree: Tree, rooms: Mapping[int, float]) -> dict[int, float]:
    sums: dict[int, float] = defaultdict(float)
    for provider, room in rooms.items():
        sums[tree.places.of.get(provider, 0)] += room
    return sums


def _fewest(demand: float, rooms: Mapping[int, float], places: int) -> int:
    """Return the least number of places of a level that have room for a demand."""
    by_place: dict[int, float] = defaultdict(float)
    for mask, room in rooms.items():
        by_place[mask & places] += room
    missing, count = demand - by_place.pop(0, 0), 0
    for room in sorted(by_place.values(), reverse=True):
        if missing <= 0:
            break
        missing, count = missing - room, count + 1
    return max(1, count)


class Touches:
    """The constraint that exactly this many places of each level are touched.

    Args:
        slots: in search order.
        places: where the providers of the tree lie.
        counts: how many places of each level.
    """

    def __init__(self, slots: Sequence[Slot], places: Places, counts: Counts) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if slot.resources)
        self._after = [sum(later > depth for later in self.depths) for depth in range(len(slots))]
        self._places = places
        self._counts = counts
        self._touched = [0]
        self._missing: dict[int, int | None] = {}

    def is_hopeless(self) -> bool:
        """Leave it to the search."""
        return False

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider if no level has too many places touched, and the slots to come can touch the rest."""
        touched = self._touched[-1] | self._places.of.get(provider, 0)
        if touched not in self._missing:
            self._missing[touched] = self._missing_from(touched)
        missing = self._missing[touched]
        if missing is None or missing > self._after[depth]:
            return False
        self._touched.append(touched)
        return True

    def _missing_from(self, touched: int) -> int | None:
        """Return how many places the level that lacks most is missing; None if too many are touched."""
        lacks = [wanted - count for wanted, count in zip(self._counts, self._places.counts(touched), strict=True)]
        return None if min(lacks) < 0 else max(lacks)

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        """Undo the last choice."""
        self._touched.pop()

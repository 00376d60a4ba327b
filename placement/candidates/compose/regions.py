"""Regions: the sets of places that a candidate may touch, given how many it is to touch of each level.

A region is an integer with a bit for each place (``domain.places``). Knowing the regions with enough room keeps the
search out of corners without it, which it would otherwise try in every order.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import comb

from placement.allocators.compactness import Counts
from placement.domain.places import Places
from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import Tree

MAX_REGIONS = 2000
"""If there are more, the search does without."""


class Regions:
    """The regions of one tree.

    Args:
        plan: what is asked for.
        tree: the tree, with places.
        slots: the slots of the plan; those without resources touch nothing.
    """

    def __init__(self, plan: Plan, tree: Tree, slots: Sequence[Slot]) -> None:
        self._levels = tree.places.levels
        consuming = [slot for slot in slots if slot.resources]
        of = tree.places.of
        # Providers in the same places are reached together.
        self._rows = {
            demand: frozenset([of.get(provider, 0) for provider in tree.options[demand]])
            for demand in {slot.demand for slot in consuming}
        }
        self._masks = frozenset[int]().union(*self._rows.values())
        self._loads = list(_loads(plan, tree, consuming))
        self._most = len(consuming)

    @property
    def possible(self) -> Iterator[Counts]:
        """How many places of each level candidates can touch, in ascending order."""
        bounds = [self._bounds(places, self._most) for places in self._levels]
        return product(*[range(least, most + 1) for least, most in bounds])

    def _bounds(self, places: int, slots: int) -> tuple[int, int]:
        reached = 0
        for mask in self._masks:
            reached |= mask
        most = max(1, min(slots, (reached & places).bit_count()))
        least = max([_fewest(demand, rooms, places) for demand, rooms in self._loads], default=1)
        return least, most

    def touching(self, counts: Counts) -> list[int] | None:
        """Return all regions with this many places of each level that have room for everything; None if too many.

        The room check is a relaxation: it never rejects a region with enough room.
        """
        regions, outer = [0], 0
        for places, count in zip(self._levels, counts, strict=True):
            grown: list[int] = []
            for region in regions:
                reached = 0  # The places of this level that lie in the region, or in no place of the levels before.
                for mask in self._masks:
                    if not mask & outer & ~region:
                        reached |= mask & places
                if comb(reached.bit_count(), count) + len(grown) > MAX_REGIONS:
                    return None
                grown += [region | more for more in _some(reached, count)]
            regions, outer = grown, outer | places
        return [region for region in regions if self._has_room(region)]

    def _has_room(self, region: int) -> bool:
        outside = ~region
        if not all([any([not mask & outside for mask in row]) for row in self._rows.values()]):
            return False
        return all(
            [
                sum([room for mask, room in rooms.items() if not mask & outside]) >= demand
                for demand, rooms in self._loads
            ]
        )


def _some(reached: int, count: int) -> Iterator[int]:
    """Yield every set of ``count`` of the places; a level without places counts as touched once."""
    bits = [1 << place for place in range(reached.bit_length()) if reached >> place & 1]
    if count == 1 and not bits:
        yield 0
    for chosen in combinations(bits, count):
        yield sum(chosen)


def _loads(plan: Plan, tree: Tree, consuming: Sequence[Slot]) -> Iterator[tuple[float, Mapping[int, float]]]:
    """Yield what adds up: the total asked for, and the room for it by place mask."""
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
        regions: the regions to stay in; None if any will do.
    """

    def __init__(self, slots: Sequence[Slot], places: Places, counts: Counts, regions: Collection[int] | None) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if slot.resources)
        self._after = [sum(later > depth for later in self.depths) for depth in range(len(slots))]
        self._places = places
        self._counts = counts
        self._regions = regions
        self._touched = [0]
        self._missing: dict[int, int | None] = {}

    def is_hopeless(self) -> bool:
        """Tell whether there is no region."""
        return self._regions is not None and not self._regions

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider if some region has all places touched so far, and the slots to come can touch the rest."""
        touched = self._touched[-1] | self._places.of.get(provider, 0)
        if touched not in self._missing:
            self._missing[touched] = self._missing_from(touched)
        missing = self._missing[touched]
        if missing is None or missing > self._after[depth]:
            return False
        self._touched.append(touched)
        return True

    def _missing_from(self, touched: int) -> int | None:
        """Return how many places the level that lacks most is missing; None if too many, or wrong ones, are touched."""
        if self._regions is not None and all([touched & ~region for region in self._regions]):
            return None
        lacks = [wanted - count for wanted, count in zip(self._counts, self._places.counts(touched), strict=True)]
        return None if min(lacks) < 0 else max(lacks)

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        """Undo the last choice."""
        self._touched.pop()

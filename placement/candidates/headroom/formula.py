"""From slots and their options to a formula that counts copies in trees of one shape, exact where possible.

Slots compete if they may take the same class from the same provider, or must not meet there (isolate, or one group
served by several providers). Slots that do not compete are counted separately, because any of their options combine.
Competing slots that are alike are counted by ``Spread``. A same_subtree is counted region by region, if its regions
have no provider in common. Everything else gets an upper bound.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from placement.allocators.headroom import Spread
from placement.candidates.headroom.fleets import TreeShape
from placement.candidates.headroom.options import OptionRows
from placement.candidates.headroom.parts import AlikeSlots, AmountsById, FormulaPart, Least, OneSlot, SumOfClass, Total
from placement.domain.search_plan import Plan
from placement.domain.whole_cloud import WholeCloud


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """A slot, by its number in the plan, with the providers that may serve it in a shape.

    Slots with the same ``apart`` must not meet on a provider.
    """

    number: int
    suffix: str
    amounts: AmountsById
    places: tuple[int, ...]
    apart: str | None

    def competes(self, other: "OpenSlot") -> bool:
        """Tell whether what one slot takes may leave too little for the other."""
        if set(self.places).isdisjoint(other.places):
            return False
        is_apart = self.apart is not None and self.apart == other.apart
        return is_apart or bool(dict(self.amounts).keys() & dict(other.amounts).keys())


@dataclass(frozen=True, slots=True)
class Formula:
    """How many copies fit into a tree.

    Args:
        parts: every copy needs each of them.
        pooled: further such parts: slots that pools may serve, too, and that compete with no other slot.
        mixed: sets of competing slots that ask different things and are tied to no others; the parts only bound them.
        is_exact: whether the count is exact, mixed slots aside; otherwise it is an upper bound.
    """

    parts: tuple[FormulaPart, ...]
    pooled: tuple[OneSlot, ...] = ()
    mixed: tuple[tuple[int, ...], ...] = ()
    is_exact: bool = True

    @property
    def alone(self) -> FormulaPart:
        """How many fit into a tree that has all pools to itself."""
        return Least((*self.parts, *self.pooled))


def open_slots(plan: Plan, cloud: WholeCloud, rows: OptionRows) -> list[OpenSlot]:
    """Return the slots of a plan with their options."""
    counted = Counter([slot.suffix for slot in plan.slots if slot.is_granular])
    isolate = plan.request.isolate
    return [
        OpenSlot(
            number,
            slot.suffix,
            tuple([(cloud.classes[name], amount) for name, amount in slot.resources]),
            tuple(rows[slot.demand]),
            ("" if isolate else slot.suffix) if slot.is_granular and (isolate or counted[slot.suffix] > 1) else None,
        )
        for number, slot in enumerate(plan.slots)
    ]


def formula_for(plan: Plan, slots: Sequence[OpenSlot], shape: TreeShape, met: Mapping[int, int]) -> Formula:
    """Return the formula of a plan for trees of one shape.

    Args:
        plan: the plan.
        slots: its slots, with the providers that can serve them there.
        shape: how the trees are built.
        met: the trait sets of the unsuffixed group that each provider meets, as bits.
    """
    making = _Making(plan, slots, shape)
    making.is_exact = making.is_exact and _meets_traits(plan, slots, met)
    return making.formula()


def _meets_traits(plan: Plan, slots: Sequence[OpenSlot], met: Mapping[int, int]) -> bool:
    """Tell whether every choice meets the trait sets of the unsuffixed group, because one slot always does."""
    all_sets = (1 << len(plan.trait_sets)) - 1
    return not all_sets or any(
        [all([met[place] == all_sets for place in slot.places]) for slot in slots if not slot.suffix]
    )


class _Making:
    """One formula in the making."""

    def __init__(self, plan: Plan, slots: Sequence[OpenSlot], shape: TreeShape) -> None:
        self._plan = plan
        self._slots = slots
        self._shape = shape
        is_flat = len(shape.parents) == 1 and not shape.pools
        self.is_exact = plan.request.combines_nested or len(slots) == 1 or is_flat

    def formula(self) -> Formula:
        tied = [suffixes for suffixes in self._plan.request.same_subtree if len(self._of(suffixes)) > 1]
        parts = [self._region_sums(suffixes) for suffixes in tied]
        suffixes_tied = [suffix for suffixes in tied for suffix in suffixes]
        free = [slot for slot in self._slots if slot.suffix not in suffixes_tied]
        if self._meet(tied, suffixes_tied):
            self.is_exact = False
        pooled, mixed = [], []
        for cluster in clusters(free):
            if _is_mixed(cluster):
                mixed.append(tuple([slot.number for slot in cluster]))
            if len(cluster) == 1 and any([place < 0 for place in cluster[0].places]):
                pooled.append(OneSlot(cluster[0].places, cluster[0].amounts))
            else:
                parts += self._of_cluster(cluster)
        # A slot with options in two trees is counted exactly only if it competes with no other.
        if any([place < 0 for slot in self._slots for place in slot.places]) and len(pooled) < self._slots_with_pools():
            self.is_exact = False
        return Formula(tuple(parts), tuple(pooled), tuple(mixed), self.is_exact)

    def _of(self, suffixes: Iterable[str]) -> list[OpenSlot]:
        return [slot for slot in self._slots if slot.suffix in suffixes]

    def _slots_with_pools(self) -> int:
        return sum([min(slot.places) < 0 for slot in self._slots])

    def _meet(self, tied: Sequence[frozenset[str]], suffixes: Sequence[str]) -> bool:
        """Tell whether a slot of a same_subtree competes with a slot outside it, or is in another one, too."""
        if len(set(suffixes)) < len(suffixes):
            return True
        return any(
            [
                one.competes(other)
                for members in tied
                for one in self._of(members)
                for other in self._slots
                if other.suffix not in members
            ]
        )

    def _region_sums(self, suffixes: frozenset[str]) -> FormulaPart:
        """Return how many copies of tied slots fit: the sum over the heads they may lie below."""
        members = self._of(suffixes)
        regions = dict(self._regions(members))
        heads = regions.keys()
        is_apart = not any([set(self._shape.above(head)) & heads - {head} for head in heads])
        if is_apart and all([any([row == (head,) for row in rows]) for head, rows in regions.items()]):
            return Total(tuple([self._least(members, rows) for rows in regions.values()]))
        self.is_exact = False
        rows = [
            tuple(sorted({place for of_region in regions.values() for place in of_region[index]}))
            for index in range(len(members))
        ]
        return self._least(members, rows) if regions else Total(())

    def _regions(self, members: Sequence[OpenSlot]) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
        """Yield each head that all members may lie below, with their options there."""
        for head in sorted({place for slot in members for place in slot.places}):
            rows = [tuple([place for place in slot.places if head in self._shape.above(place)]) for slot in members]
            if all(rows):
                yield head, rows

    def _least(self, members: Sequence[OpenSlot], rows: Sequence[tuple[int, ...]]) -> FormulaPart:
        here = [replace(slot, places=row) for slot, row in zip(members, rows, strict=True)]
        found = clusters(here)
        self.is_exact = self.is_exact and not any([_is_mixed(cluster) for cluster in found])
        return Least(tuple([part for cluster in found for part in self._of_cluster(cluster)]))

    def _of_cluster(self, cluster: Sequence[OpenSlot]) -> list[FormulaPart]:
        """Return bounds on competing slots: a single, exact part if they are alike."""
        if len(cluster) == 1:
            return [OneSlot(cluster[0].places, cluster[0].amounts)]
        alike: dict[AmountsById, list[OpenSlot]] = {}
        for slot in cluster:
            alike.setdefault(slot.amounts, []).append(slot)
        parts: list[FormulaPart] = [self._alike(slots) for slots in alike.values()]
        return parts + _sums(cluster) if _is_mixed(cluster) else parts

    def _alike(self, slots: Sequence[OpenSlot]) -> FormulaPart:
        places = sorted({place for slot in slots for place in slot.places})
        number = {place: index for index, place in enumerate(places)}
        is_apart = slots[0].apart is not None and len({slot.apart for slot in slots}) == 1
        each = [1 if is_apart else self._most_of_one_copy(place, slots[0].amounts) for place in places]
        spread = Spread([[number[place] for place in slot.places] for slot in slots], each)
        self.is_exact = self.is_exact and spread.is_exact
        return AlikeSlots(spread, places, slots[0].amounts)

    def _most_of_one_copy(self, place: int, amounts: AmountsById) -> int:
        """Return how many slots of one copy a provider may serve: together they are one allocation."""
        if place < 0 or not amounts:
            return len(self._slots)
        return min([self._shape.rules[place][name][1] // amount for name, amount in amounts])


def _is_mixed(cluster: Sequence[OpenSlot]) -> bool:
    """Tell whether competing slots differ."""
    return len({(slot.amounts, slot.apart) for slot in cluster}) > 1


def clusters(slots: Sequence[OpenSlot]) -> list[list[OpenSlot]]:
    """Partition slots so that those of different sets do not compete."""
    of = list(range(len(slots)))
    for one, other in combinations(range(len(slots)), 2):
        if of[one] != of[other] and slots[one].competes(slots[other]):
            gone, kept = of[other], of[one]
            of = [kept if number == gone else number for number in of]
    return [[slots[index] for index, number in enumerate(of) if number == cluster] for cluster in dict.fromkeys(of)]


def _sums(cluster: Sequence[OpenSlot]) -> list[FormulaPart]:
    """Return for each class the upper bound given by all that is free of it."""
    asked: Counter[int] = Counter()
    places: dict[int, set[int]] = {}
    for slot in cluster:
        asked.update(dict(slot.amounts))
        for name, _amount in slot.amounts:
            places.setdefault(name, set()).update(slot.places)
    return [SumOfClass(tuple(sorted(places[name])), name, amount) for name, amount in asked.items()]

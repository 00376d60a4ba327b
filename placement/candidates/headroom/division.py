"""From slots and their options to a formula that counts copies in all trees of one form at once, exact where possible.

Slots compete if they may take the same class from the same provider, or must not meet there (isolate, or one group
served by several providers). Slots that do not compete are counted separately, because any of their options combine.
Competing slots that are alike are counted by Hall's condition. A same_subtree is counted region by region, if its
regions have no provider in common. Everything else gets an upper bound.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from placement.candidates.headroom.forms import ENDLESS, ClassAmounts, OptionRows, TreeForm, TreesOfForm
from placement.cloud.providers import Ints
from placement.domain.search_plan import Plan

MAX_SETS = 6
"""With more distinct sets of places than this, not all combinations of alike slots are checked."""

FormulaPart = Callable[[TreesOfForm], Ints]
"""Something that bounds the number of copies: how many it allows in each tree."""


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """A slot, by its number in the plan, with who may serve it in a form; those of one ``isolation`` must not meet."""

    number: int
    suffix: str
    amounts: ClassAmounts
    places: tuple[int, ...]
    isolation: str | None

    def competes(self, other: "OpenSlot") -> bool:
        """Tell whether what one slot takes may leave too little for the other."""
        if set(self.places).isdisjoint(other.places):
            return False
        is_apart = self.isolation is not None and self.isolation == other.isolation
        return is_apart or bool(dict(self.amounts).keys() & dict(other.amounts).keys())

    def copies(self, trees: TreesOfForm) -> Ints:
        """Return how many copies fit if it competes with no other slot: each provider serves as many as it has room."""
        return _summed([trees.room(place, self.amounts) for place in self.places], trees)


@dataclass(frozen=True, slots=True)
class Formula:
    """How many copies fit into a tree: every copy needs each part, and each pooled slot, which competes with no other.

    ``mixed`` are sets of competing slots that ask different things and are tied to no others; the parts only bound
    them. ``is_exact`` tells whether the count is exact, mixed slots aside; otherwise it is an upper bound.
    """

    parts: tuple[FormulaPart, ...]
    pooled: tuple[OpenSlot, ...] = ()
    mixed: tuple[tuple[int, ...], ...] = ()
    is_exact: bool = True

    def alone(self, trees: TreesOfForm) -> Ints:
        """Return how many fit into each tree, if it has all pools to itself."""
        return least([*self.parts, *[slot.copies for slot in self.pooled]])(trees)


def least(parts: Sequence[FormulaPart]) -> FormulaPart:
    """Return what the scarcest of some parts allows: every copy needs each."""

    def copies(trees: TreesOfForm) -> Ints:
        scarcest: Ints = np.minimum.reduce([np.full(len(trees.starts), ENDLESS), *[part(trees) for part in parts]])
        return scarcest

    return copies


def _summed(columns: Sequence[Ints], trees: TreesOfForm) -> Ints:
    if len(columns) == 1:
        return columns[0]
    return np.add.reduce(columns) if columns else np.zeros(len(trees.starts), dtype=np.int64)


def open_slots(plan: Plan, classes: Mapping[str, int], rows: OptionRows) -> list[OpenSlot]:
    """Return the slots of a plan with their options, given the ids of classes by name."""
    counted = Counter([slot.suffix for slot in plan.slots if slot.is_granular])
    isolate = plan.request.isolate
    return [
        OpenSlot(
            number,
            slot.suffix,
            tuple([(classes[name], amount) for name, amount in slot.resources]),
            tuple(rows[slot.demand]),
            ("" if isolate else slot.suffix) if slot.is_granular and (isolate or counted[slot.suffix] > 1) else None,
        )
        for number, slot in enumerate(plan.slots)
    ]


def formula_for(plan: Plan, slots: Sequence[OpenSlot], form: TreeForm, met: Mapping[int, int]) -> Formula:
    """Return the formula of a plan for a form, given its slots, and the trait sets that providers meet, as bits."""
    return _Making(plan, slots, form).formula(met)


class _Making:
    """One formula in the making."""

    def __init__(self, plan: Plan, slots: Sequence[OpenSlot], form: TreeForm) -> None:
        self._plan = plan
        self._slots = slots
        self._form = form
        is_flat = len(form.parents) == 1 and not form.pools
        self.is_exact = plan.request.combines_nested or len(slots) == 1 or is_flat

    def formula(self, met: Mapping[int, int]) -> Formula:
        of_subtrees = [[slot for slot in self._slots if slot.suffix in tie] for tie in self._plan.request.same_subtree]
        tied = [members for members in of_subtrees if len(members) > 1]
        parts = [self._region_sums(members) for members in tied]
        in_any = [slot for members in tied for slot in members]
        untied = [slot for slot in self._slots if slot not in in_any]
        pairs = [(slot, rival) for members in tied for slot in members for rival in self._slots if rival not in members]
        if len({slot.number for slot in in_any}) < len(in_any) or any([slot.competes(rival) for slot, rival in pairs]):
            self.is_exact = False
        pooled, mixed = [], []
        for cluster in _clusters(untied):
            if _is_mixed(cluster):
                mixed.append(tuple([slot.number for slot in cluster]))
            if len(cluster) == 1 and min(cluster[0].places) < 0:
                pooled += cluster
            else:
                parts += self._of_cluster(cluster)
        # A slot with options in two trees is counted exactly only if it competes with no other.
        if len(pooled) < sum([min(slot.places) < 0 for slot in self._slots]):
            self.is_exact = False
        # Every choice meets the trait sets of the unsuffixed group if one slot always does.
        all_sets = (1 << len(self._plan.trait_sets)) - 1
        loose = [slot.places for slot in self._slots if not slot.suffix]
        has_traits = not all_sets or any([all([met.get(place) == all_sets for place in places]) for places in loose])
        return Formula(tuple(parts), tuple(pooled), tuple(mixed), is_exact=self.is_exact and has_traits)

    def _region_sums(self, members: Sequence[OpenSlot]) -> FormulaPart:
        """Return how many copies of tied slots fit: the sum over the heads that all of them may lie below."""
        regions: dict[int, list[tuple[int, ...]]] = {}
        for head in sorted({place for slot in members for place in slot.places}):
            rows = [tuple([place for place in slot.places if head in self._form.above(place)]) for slot in members]
            if all(rows):
                regions[head] = rows
        heads = regions.keys()
        is_apart = not any([set(self._form.above(head)) & heads - {head} for head in heads])
        if is_apart and all([(head,) in rows for head, rows in regions.items()]):
            of_regions = [self._least(members, rows) for rows in regions.values()]
            return lambda trees: _summed([part(trees) for part in of_regions], trees)
        self.is_exact = False
        rows = [tuple(sorted({*()}.union(*of_slot))) for of_slot in zip(*regions.values(), strict=True)]
        return self._least(members, rows) if regions else lambda trees: _summed((), trees)

    def _least(self, members: Sequence[OpenSlot], rows: Sequence[tuple[int, ...]]) -> FormulaPart:
        competing = _clusters([replace(slot, places=row) for slot, row in zip(members, rows, strict=True)])
        self.is_exact = self.is_exact and not any([_is_mixed(cluster) for cluster in competing])
        return least([part for cluster in competing for part in self._of_cluster(cluster)])

    def _of_cluster(self, cluster: Sequence[OpenSlot]) -> list[FormulaPart]:
        """Return bounds on competing slots: a single, exact part if they are alike."""
        if len(cluster) == 1:
            return [cluster[0].copies]
        alike: dict[ClassAmounts, list[OpenSlot]] = {}
        for slot in cluster:
            alike.setdefault(slot.amounts, []).append(slot)
        parts = [self._alike(slots) for slots in alike.values()]
        return parts + _sums(cluster) if _is_mixed(cluster) else parts

    def _alike(self, slots: Sequence[OpenSlot]) -> FormulaPart:
        places, amounts = sorted({place for slot in slots for place in slot.places}), slots[0].amounts
        # By place, how many slots of one copy it may take: together they are one allocation.
        per_place = dict.fromkeys(places, len(self._slots))
        if slots[0].isolation is not None and len({slot.isolation for slot in slots}) == 1:
            per_place = dict.fromkeys(places, 1)
        elif amounts:
            units = self._form.max_units
            own = [place for place in places if place >= 0]
            per_place |= {place: min([units[place, name] // amount for name, amount in amounts]) for place in own}
        rows = Counter([frozenset(slot.places) for slot in slots])
        self.is_exact = self.is_exact and len(rows) <= MAX_SETS
        return _copies_of_alike(rows, per_place, amounts)


def _copies_of_alike(
    rows: Mapping[frozenset[int], int], per_place: Mapping[int, int], amounts: ClassAmounts
) -> FormulaPart:
    """Return how many copies can have all of their slots, if these compete and ask the same.

    ``n`` copies can be placed if and only if, for every set T of slots, the places that T may use have room:
    ``|T| n <= sum of min(room, n per_place)`` over these places, where a place has ``room`` for so many slots in all.
    This is Hall's condition for slots that are needed n times each; by Koenig's edge colouring of bipartite graphs,
    the result divides into n copies, none with more than ``per_place`` in one place. With more than ``MAX_SETS`` rows,
    not all sets are looked at, and it is an upper bound. ``rows`` has the number of slots by their places.
    """
    unions = {*rows, frozenset[int]().union(*rows)}
    for places in rows if len(rows) <= MAX_SETS else ():
        unions |= {places | covered for covered in unions}
    together = [(sum([slots for places, slots in rows.items() if places <= union]), sorted(union)) for union in unions]

    def copies_of(slots: int, places: Collection[int], room: Mapping[int, Ints]) -> Ints:
        fitting: Ints = np.minimum(np.add.reduce([room[place] for place in places]) // slots, ENDLESS)
        # The estimate only shrinks and never drops below the answer, so its first fixed point is the largest solution.
        while True:
            usable = [np.minimum(room[place], fitting * min(slots, per_place[place])) for place in places]
            before, fitting = fitting, np.minimum(fitting, np.add.reduce(usable) // slots)
            if np.array_equal(before, fitting):
                return fitting

    def copies(trees: TreesOfForm) -> Ints:
        room = {place: trees.room(place, amounts) for place in per_place}
        scarcest: Ints = np.minimum.reduce([copies_of(slots, places, room) for slots, places in together])
        return scarcest

    return copies


def _is_mixed(cluster: Sequence[OpenSlot]) -> bool:
    """Tell whether competing slots differ."""
    return len({(slot.amounts, slot.isolation) for slot in cluster}) > 1


def _clusters(slots: Sequence[OpenSlot]) -> list[list[OpenSlot]]:
    """Partition slots so that those of different sets do not compete."""
    cluster_of = list(range(len(slots)))
    for first, second in combinations(range(len(slots)), 2):
        if cluster_of[first] != cluster_of[second] and slots[first].competes(slots[second]):
            gone, kept = cluster_of[second], cluster_of[first]
            cluster_of = [kept if number == gone else number for number in cluster_of]
    return [
        [slot for slot, number in zip(slots, cluster_of, strict=True) if number == cluster]
        for cluster in dict.fromkeys(cluster_of)
    ]


def _sums(cluster: Sequence[OpenSlot]) -> list[FormulaPart]:
    """Return for each class the upper bound given by all that is free of it."""
    amounts = Counter[int]()
    for slot in cluster:
        amounts.update(dict(slot.amounts))

    def bound(class_id: int, amount: int) -> FormulaPart:
        places = sorted({place for slot in cluster if class_id in dict(slot.amounts) for place in slot.places})
        return lambda trees: _summed([trees.cell((place, class_id)) for place in places], trees) // amount

    return [bound(class_id, amount) for class_id, amount in amounts.items()]

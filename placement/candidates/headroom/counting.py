"""Counts how many copies of one request fit into the trees of each form, by a formula where one is exact.

Slots compete if they may take the same class from the same provider, or must not meet there (isolate, or one group
served by several providers). Slots that do not compete are counted separately, because any of their options combine.
Competing slots that are alike are counted by Hall's condition. A same_subtree is counted region by region, if its
regions have no provider in common. Everything else gets an upper bound, and its ways are packed (``ways``).
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from placement.allocators import Budget
from placement.candidates.compose.constraints import Rows
from placement.candidates.headroom.forms import (
    ENDLESS,
    Cell,
    ClassAmounts,
    CloudInForms,
    OpenSlot,
    TreeForm,
    TreesOfForm,
)
from placement.candidates.headroom.ways import MAX_CHOICES_IN_ALL, Ways
from placement.candidates.serving import Serving
from placement.cloud.providers import Flags, Ints
from placement.domain.search_plan import Demand, Plan

MAX_SETS = 6
"""With more distinct sets of places than this, not all combinations of alike slots are checked."""

FormulaPart = Callable[[TreesOfForm], Ints]
"""Something that bounds the number of copies: how many it allows in each tree."""


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


def open_slots(plan: Plan, classes: Mapping[str, int], rows: Rows) -> list[OpenSlot]:
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


class FormulaMaker:
    """Makes the formula of a plan for a form, given its slots."""

    def __init__(self, plan: Plan, slots: Sequence[OpenSlot], form: TreeForm) -> None:
        self._plan = plan
        self._slots = slots
        self._form = form
        is_flat = len(form.parents) == 1 and not form.pools
        self._is_exact = plan.request.combines_nested or len(slots) == 1 or is_flat

    def formula(self, met: Mapping[int, int]) -> Formula:
        """Return the formula, given the trait sets that providers meet, as bits."""
        of_subtrees = [[slot for slot in self._slots if slot.suffix in tie] for tie in self._plan.request.same_subtree]
        tied = [members for members in of_subtrees if len(members) > 1]
        parts = [self._region_sums(members) for members in tied]
        in_any = [slot for members in tied for slot in members]
        untied = [slot for slot in self._slots if slot not in in_any]
        pairs = [(slot, rival) for members in tied for slot in members for rival in self._slots if rival not in members]
        if len({slot.number for slot in in_any}) < len(in_any) or any([slot.competes(rival) for slot, rival in pairs]):
            self._is_exact = False
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
            self._is_exact = False
        # Every choice meets the trait sets of the unsuffixed group if one slot always does.
        all_sets = (1 << len(self._plan.trait_sets)) - 1
        loose = [slot.places for slot in self._slots if not slot.suffix]
        has_traits = not all_sets or any([all([met.get(place) == all_sets for place in places]) for places in loose])
        return Formula(tuple(parts), tuple(pooled), tuple(mixed), is_exact=self._is_exact and has_traits)

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
            return lambda trees: trees.summed([part(trees) for part in of_regions])
        self._is_exact = False
        rows = [tuple(sorted({*()}.union(*of_slot))) for of_slot in zip(*regions.values(), strict=True)]
        return self._least(members, rows) if regions else lambda trees: trees.summed(())

    def _least(self, members: Sequence[OpenSlot], rows: Sequence[tuple[int, ...]]) -> FormulaPart:
        competing = _clusters([replace(slot, places=row) for slot, row in zip(members, rows, strict=True)])
        self._is_exact = self._is_exact and not any([_is_mixed(cluster) for cluster in competing])
        return least([part for cluster in competing for part in self._of_cluster(cluster)])

    def _of_cluster(self, cluster: Sequence[OpenSlot]) -> list[FormulaPart]:
        """Return bounds on competing slots: a single, exact part if they are alike."""
        if len(cluster) == 1:
            return [cluster[0].copies]
        alike: dict[ClassAmounts, list[OpenSlot]] = {}
        for slot in cluster:
            alike.setdefault(slot.amounts, []).append(slot)
        parts = [self._alike(slots) for slots in alike.values()]
        # Of slots that differ, all that is free of a class is a bound for the class.
        amounts = Counter[int]()
        for slot in cluster if _is_mixed(cluster) else ():
            amounts.update(dict(slot.amounts))
        return parts + [_sum_of_class(cluster, *total) for total in amounts.items()]

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
        self._is_exact = self._is_exact and len(rows) <= MAX_SETS
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


def _sum_of_class(cluster: Sequence[OpenSlot], class_id: int, amount: int) -> FormulaPart:
    places = sorted({place for slot in cluster if class_id in dict(slot.amounts) for place in slot.places})
    return lambda trees: trees.summed([trees.cell((place, class_id)) for place in places]) // amount


def _is_mixed(cluster: Sequence[OpenSlot]) -> bool:
    return len({(slot.amounts, slot.isolation) for slot in cluster}) > 1


def _clusters(slots: Sequence[OpenSlot]) -> list[list[OpenSlot]]:
    """Partition slots so that those of different sets do not compete."""
    cluster_of = list(range(len(slots)))
    for first, second in combinations(range(len(slots)), 2):
        if cluster_of[first] != cluster_of[second] and slots[first].competes(slots[second]):
            gone, kept = cluster_of[second], cluster_of[first]
            cluster_of = [kept if number == gone else number for number in cluster_of]
    numbered = [*zip(slots, cluster_of, strict=True)]
    return [[slot for slot, number in numbered if number == cluster] for cluster in dict.fromkeys(cluster_of)]


class Pooled(NamedTuple):
    """A slot that pools serve, too: copies that each tree serves itself, and room in each of its pools."""

    amounts: ClassAmounts
    own: Ints
    room: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CountedTrees:
    """The trees of a form that can serve a request, and bounds on how often, as if each had the pools to itself.

    ``without_pools`` counts only what pools do not serve, ``pooled`` are the slots that they do; it ``is_shared`` if
    anything may come from pools.
    """

    trees: TreesOfForm
    slots: Sequence[OpenSlot]
    least: Ints
    max_copies: Ints
    without_pools: Ints
    pooled: tuple[Pooled, ...] = ()
    is_shared: bool = False

    def chosen(self, chosen: Flags) -> "CountedTrees":
        """Return the same of some of the trees."""
        return replace(
            self,
            trees=self.trees.chosen(chosen),
            least=self.least[chosen],
            max_copies=self.max_copies[chosen],
            without_pools=self.without_pools[chosen],
            pooled=tuple([slot._replace(own=slot.own[chosen]) for slot in self.pooled]),
        )


class CopyCounter:
    """Counts the copies of one plan in the trees of a cloud: what can be done in a form is told by its first tree."""

    def __init__(self, plan: Plan, cloud: CloudInForms) -> None:
        self.plan = plan
        self.cloud = cloud
        self._serving = serving = Serving(plan, cloud.ids, columns=cloud.columns, sets=cloud.sets)
        self._trees = np.array([of_form.trees[0] for of_form in cloud.forms], dtype=np.int64)
        self._starts = cloud.columns.providers.starts[self._trees]
        possible = serving.possible_trees if serving.is_possible else np.zeros(len(cloud.columns.providers.roots), bool)
        self._is_possible = [True] * len(self._trees) if possible is None else possible[self._trees].tolist()
        at = cloud.columns.providers.positions_in(self._trees)
        self._options = [self._options_for(demand, at) for demand in plan.demands]
        self._composing = Budget(MAX_CHOICES_IN_ALL)
        self._ways: dict[tuple[int, Sequence[int]], Ways] = {}
        self._formulas: dict[int, tuple[Sequence[OpenSlot], Formula | None]] = {}

    def counted(self, trees: TreesOfForm, budget: Budget) -> CountedTrees | None:
        """Count in trees of one form; None if they could not serve the plan even if they were empty."""
        slots, formula = self._formula(trees)
        if formula is None:
            return None
        fitting = max_copies = formula.alone(trees)
        for tied in formula.mixed if formula.is_exact else (tuple(range(len(slots))),):
            ways = self._ways_of(trees, slots, tied)
            if ways.is_every and not ways.every:
                return None
            at_least, max_copies = ways.copies(trees, max_copies, budget)
            fitting = np.minimum(fitting, at_least)
        without_pools = least(formula.parts)(trees) if formula.pooled else max_copies
        is_divided = formula.is_exact and not formula.mixed
        pooled = tuple([self._pooled(slot, trees) for slot in formula.pooled]) if is_divided else ()
        is_shared = any([place < 0 for slot in slots for place in slot.places])
        return CountedTrees(trees, slots, fitting, max_copies, without_pools, pooled, is_shared)

    def ways(self, counted: CountedTrees) -> list[Mapping[Cell, int]] | None:
        """Return what copies may take of each provider and class in some trees; None if there are too many ways."""
        ways = self._ways_of(counted.trees, counted.slots, tuple(range(len(counted.slots))))
        if not ways.is_every:
            return None
        return [{ways.cells[index]: amount for index, amount in bundle.items()} for bundle in ways.every]

    def _options_for(self, demand: Demand, at: Ints) -> list[list[int]]:
        """Return who can serve a demand in each form; a sharing provider is one pool, also for its own tree."""
        at = self._serving.providers(demand, at, whatever_is_used=True)
        numbers = np.searchsorted(self._trees, self.cloud.columns.providers.trees[at])
        rows: list[list[int]] = [[] for _ in self._trees]
        for number, place in zip(numbers.tolist(), (at - self._starts[numbers]).tolist(), strict=True):
            rows[number].append(place)
        if not self.cloud.pools:
            return rows
        number_at = {pool.position: number for number, pool in self.cloud.pools.items()}
        pools_at = np.array(sorted(number_at))
        sharing = self._serving.providers(demand, pools_at, sharing=True, whatever_is_used=True)
        pools = {number_at[position] for position in sharing.tolist()}
        for number, form in enumerate([of_form.form for of_form in self.cloud.forms]):
            shared = pools.intersection([pool.number for pool in form.pools])
            rows[number] = sorted({form.own_pools.get(place, place) for place in rows[number]} | shared)
        return rows

    def _formula(self, trees: TreesOfForm) -> tuple[Sequence[OpenSlot], Formula | None]:
        """Return the slots in trees of a form, and how to count there; None if they must not serve, or cannot."""
        number = trees.number
        if number not in self._formulas:
            rows: Rows = [of_demand[number] for of_demand in self._options] if self._is_possible[number] else []
            slots = open_slots(self.plan, self.cloud.ids.classes, rows) if rows and all(rows) else []
            formula = FormulaMaker(self.plan, slots, trees.form).formula(self._met(number, slots)) if slots else None
            self._formulas[number] = slots, formula
        return self._formulas[number]

    def _ways_of(self, trees: TreesOfForm, slots: Sequence[OpenSlot], tied: tuple[int, ...]) -> Ways:
        """Return the ways of all slots, or of some that are tied only by competing with each other."""
        if (ways := self._ways.get((trees.number, tied))) is None:
            plan = self.plan
            if len(tied) < len(slots):
                alone, request = tuple([plan.slots[number] for number in tied]), replace(plan.request, same_subtree=())
                requested = {name for slot in alone for name, _amount in slot.resources}
                contended = tuple([name for name in plan.contended if name in requested])
                plan = replace(plan, slots=alone, request=request, contended=contended, trait_sets=())
            chosen, met = [slots[number] for number in tied], self._met(trees.number, slots)
            ways = Ways(plan, self.cloud, trees.form, slots=chosen, met=met, composing=self._composing)
            self._ways[trees.number, tied] = ways
        return ways

    def _met(self, number: int, slots: Sequence[OpenSlot]) -> dict[int, int]:
        """Return which trait sets of the unsuffixed group each provider meets that may serve in trees of a form."""
        start, pools, met = int(self._starts[number]), self.cloud.pools, dict[int, int]()
        owners = [self._serving.with_any_trait(any_of) for any_of in self.plan.trait_sets]
        for place in {place for slot in slots for place in slot.places}:
            position = pools[place].position if place < 0 else start + place
            met[place] = sum([1 << index for index, flags in enumerate(owners) if flags[position]])
        return met

    def _pooled(self, slot: OpenSlot, trees: TreesOfForm) -> Pooled:
        own = replace(slot, places=tuple([place for place in slot.places if place >= 0]))
        room = {place: int(trees.room(place, slot.amounts)[0]) for place in slot.places if place < 0}
        return Pooled(slot.amounts, own.copies(trees), room)

"""Counts how many copies of one request fit into every tree of a cloud, and into all of them together."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Copies, drawn, exactly
from placement.candidates.headroom.division import Formula, OneSlot, OpenSlot, formula_for, least, open_slots
from placement.candidates.headroom.forms import (
    ENDLESS,
    Cell,
    ClassAmounts,
    CloudInForms,
    FreeAmounts,
    OptionRows,
    TreesOfForm,
)
from placement.candidates.headroom.ways import MAX_CHOICES_IN_ALL, Ways
from placement.candidates.serving import Serving
from placement.cloud.providers import Flags, Ints
from placement.domain.search_plan import Demand, Plan


@dataclass(frozen=True, slots=True)
class Pooled:
    """A slot that pools serve, too: copies that each tree serves itself, and room in each of its pools."""

    amounts: ClassAmounts
    own: Ints
    room: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CountedTrees:
    """The trees of a form that can serve a request, and how often they can.

    Args:
        trees: the trees.
        slots: what is asked for, and which providers may serve it.
        least, most: bounds on how many copies fit into each tree, as if it had the pools to itself.
        without_pools: how many fit, counting only what pools do not serve.
        pooled: the slots that pools serve, too.
        is_shared: whether anything may come from pools.
    """

    trees: TreesOfForm
    slots: Sequence[OpenSlot]
    least: Ints
    most: Ints
    without_pools: Ints
    pooled: tuple[Pooled, ...] = ()
    is_shared: bool = False

    def among(self, roots: Collection[int] | None) -> "CountedTrees":
        """Return the same of trees with some roots; None for all."""
        return self if roots is None else self.chosen(np.isin(self.trees.roots, [*roots]))

    def chosen(self, chosen: Flags) -> "CountedTrees":
        """Return the same of some of the trees."""
        return replace(
            self,
            trees=self.trees.chosen(chosen),
            least=self.least[chosen],
            most=self.most[chosen],
            without_pools=self.without_pools[chosen],
            pooled=tuple([replace(one, own=one.own[chosen]) for one in self.pooled]),
        )


class FormOptions:
    """Finds the options of one plan in the forms of a cloud: those in the first tree of each form."""

    def __init__(self, plan: Plan, cloud: CloudInForms) -> None:
        self._plan = plan
        self._cloud = cloud
        self._serving = serving = Serving(plan, cloud.ids, columns=cloud.columns, sets=cloud.sets)
        self._trees = np.array([of_form.trees[0] for of_form in cloud.forms], dtype=np.int64)
        self._starts = cloud.columns.providers.starts[self._trees]
        possible = serving.possible_trees if serving.is_possible else np.zeros(len(cloud.columns.providers.roots), bool)
        self._is_possible = [True] * len(self._trees) if possible is None else possible[self._trees].tolist()
        self._at = cloud.columns.providers.positions_in(self._trees)
        self._of_demands = [self._of_forms(demand) for demand in plan.demands]

    def rows(self, number: int) -> OptionRows | None:
        """Return who can serve each demand; None if the tree itself must not, or if a demand has no provider."""
        rows = [of_forms[number] for of_forms in self._of_demands] if self._is_possible[number] else []
        return rows if rows and all(rows) else None

    def met(self, number: int, places: Iterable[int]) -> dict[int, int]:
        """Return which trait sets of the unsuffixed group each of some providers meets, as bits."""
        start, pools = int(self._starts[number]), self._cloud.pools
        at = {place: pools[place].position if place < 0 else start + place for place in places}
        sets = [self._serving.with_any_trait(any_of) for any_of in self._plan.trait_sets]
        return {
            place: sum([1 << index for index, flags in enumerate(sets) if flags[position]])
            for place, position in at.items()
        }

    def _of_forms(self, demand: Demand) -> list[list[int]]:
        """Return who can serve a demand in each form; a sharing provider is one pool, also for its own tree."""
        at = self._serving.possible_providers(demand, self._at)
        numbers = np.searchsorted(self._trees, self._cloud.columns.providers.trees[at])
        rows: list[list[int]] = [[] for _ in self._trees]
        for number, place in zip(numbers.tolist(), (at - self._starts[numbers]).tolist(), strict=True):
            rows[number].append(place)
        if not self._cloud.pools:
            return rows
        serving = self._pools_for(demand)
        for number, form in enumerate([of_form.form for of_form in self._cloud.forms]):
            here = serving.intersection([pool.number for pool in form.pools])
            rows[number] = sorted({form.own_pools.get(place, place) for place in rows[number]} | here)
        return rows

    def _pools_for(self, demand: Demand) -> set[int]:
        if demand.resources and demand.group.in_tree is not None and not demand.group.is_granular:
            return set()  # in_tree keeps the unsuffixed group inside the tree.
        number_at = {pool.position: number for number, pool in self._cloud.pools.items()}
        serving = self._serving.possible_providers(demand, np.array(sorted(number_at)), sharing=True)
        return {number_at[position] for position in serving.tolist()}


class CopyCounter:
    """Counts the copies of one plan in the trees of a cloud.

    Args:
        plan: the plan.
        cloud: the cloud.
    """

    def __init__(self, plan: Plan, cloud: CloudInForms) -> None:
        self.plan = plan
        self.cloud = cloud
        self._options = FormOptions(plan, cloud)
        self._composing = Budget(MAX_CHOICES_IN_ALL)
        self._ways: dict[tuple[int, Sequence[int]], Ways] = {}
        self._formulas: dict[int, tuple[Sequence[OpenSlot], Formula | None]] = {}

    def counted(self, trees: TreesOfForm, free: FreeAmounts, budget: Budget) -> CountedTrees | None:
        """Count in trees of one form; None if they could not serve the plan even if they were empty.

        Args:
            trees: the trees.
            free: what to count in.
            budget: limits the steps taken where formulas are not exact.
        """
        slots, formula = self._formula(trees)
        if formula is None:
            return None
        least_copies = most = formula.alone(free)
        for tied in formula.mixed if formula.is_exact else (tuple(range(len(slots))),):
            ways = self._ways_of(trees, slots, tied)
            if not ways.is_possible:
                return None
            at_least, most = ways.copies(free, most, budget)
            least_copies = np.minimum(least_copies, at_least)
        is_divided = formula.is_exact and not formula.mixed
        return CountedTrees(
            trees,
            slots,
            least_copies,
            most,
            without_pools=least(formula.parts)(free) if formula.pooled else most,
            pooled=tuple([self._pooled(slot, free) for slot in formula.pooled]) if is_divided else (),
            is_shared=any([place < 0 for slot in slots for place in slot.places]),
        )

    def _formula(self, trees: TreesOfForm) -> tuple[Sequence[OpenSlot], Formula | None]:
        """Return the slots in trees of a form, and how to count there; None if a slot has no provider."""
        if trees.number not in self._formulas:
            rows = self._options.rows(trees.number)
            slots = open_slots(self.plan, self.cloud.ids.classes, rows) if rows is not None else []
            formula = formula_for(self.plan, slots, trees.form, self._met(trees.number, slots)) if slots else None
            self._formulas[trees.number] = slots, formula
        return self._formulas[trees.number]

    def ways(self, counted: CountedTrees) -> list[Mapping[Cell, int]] | None:
        """Return what copies may take of each provider and class in some trees; None if there are too many ways."""
        return self._ways_of(counted.trees, counted.slots, tuple(range(len(counted.slots)))).all_ways()

    def _ways_of(self, trees: TreesOfForm, slots: Sequence[OpenSlot], tied: tuple[int, ...]) -> Ways:
        """Return the ways of all slots, or of some that are tied only by competing with each other."""
        ways = self._ways.get((trees.number, tied))
        if ways is None:
            plan = self.plan
            if len(tied) < len(slots):
                alone, request = tuple([plan.slots[number] for number in tied]), replace(plan.request, same_subtree=())
                asked = {name for slot in alone for name, _amount in slot.resources}
                contended = tuple([name for name in plan.contended if name in asked])
                plan = replace(plan, slots=alone, request=request, contended=contended, trait_sets=())
            chosen, met = [slots[number] for number in tied], self._met(trees.number, slots)
            ways = Ways(plan, self.cloud, trees.form, slots=chosen, met=met, composing=self._composing)
            self._ways[trees.number, tied] = ways
        return ways

    def _met(self, number: int, slots: Sequence[OpenSlot]) -> dict[int, int]:
        """Return which trait sets of the unsuffixed group each provider meets that may serve in trees of a form."""
        places = {place for slot in slots for place in slot.places}
        return self._options.met(number, places) if self.plan.trait_sets else dict.fromkeys(places, 0)

    def _pooled(self, slot: OneSlot, free: FreeAmounts) -> Pooled:
        own = tuple([place for place in slot.places if place >= 0])
        pools = {place: self.cloud.pools[place].free for place in slot.places if place < 0}
        room = {
            place: min([much[class_id] // amount for class_id, amount in slot.amounts], default=ENDLESS)
            for place, much in pools.items()
        }
        return Pooled(slot.amounts, OneSlot(own, slot.amounts).copies(free), room)


def total(column: Ints) -> int:
    """Return a sum that no column may have room for."""
    return int(column.sum()) if not len(column) or int(column.max()) < 2**62 // len(column) else sum(column.tolist())


def in_all_trees(counted: Iterable[CountedTrees], among: Collection[int] | None = None) -> Copies:
    """Return how many copies fit into some trees together, counting what they share once.

    Args:
        counted: the trees by form.
        among: the roots of the trees; None for all.
    """
    chosen = [of_form.among(among) for of_form in counted]
    alone = [of_form for of_form in chosen if not of_form.is_shared]
    shared = _shared([of_form for of_form in chosen if of_form.is_shared])
    least_copies, most = (
        sum([total(of_form.least) for of_form in alone]),
        sum([total(of_form.most) for of_form in alone]),
    )
    return Copies(least_copies + shared.least, most + shared.most)


def _shared(joined: Sequence[CountedTrees]) -> Copies:
    """Return bounds on how many copies fit into trees that draw from pools.

    Exact if pools serve a single slot and nothing else is shared. With several such slots, each gives an upper bound.
    """
    if not joined:
        return Copies(0, 0)
    asked = {tuple([pooled.amounts for pooled in counted.pooled]) for counted in joined}
    slots = len(min(asked)) if len(asked) == 1 else 0
    if slots == 1:
        return exactly(_by_flow(joined, 0))
    # At least the best of them can have its copies.
    most = sum([total(counted.most) for counted in joined])
    return Copies(
        max([int(counted.least.max(initial=0)) for counted in joined]),
        min([most, *[_by_flow(joined, slot) for slot in range(slots)]]),
    )


def _by_flow(joined: Sequence[CountedTrees], slot: int) -> int:
    """Return how many copies fit if pools served only one slot: a maximum flow."""
    own, wanted, room = 0, dict[frozenset[int], int](), dict[int, int]()
    for counted in joined:
        pooled = counted.pooled[slot]
        own += total(np.minimum(counted.without_pools, pooled.own))
        pools = frozenset(pooled.room)
        wanted[pools] = wanted.get(pools, 0) + total(np.maximum(0, counted.without_pools - pooled.own))
        room |= pooled.room
    return own + drawn(wanted, room)

"""Counts how many copies of one request fit into every tree of a cloud, and into all of them together.

Formulas count where they are exact. Elsewhere the ways to serve it in trees of a form are composed and packed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from placement.allocators import Budget
from placement.allocators.bundle_packing import Bundle, BundlePacking, Copies, drawn, exactly, undominated
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.candidates.headroom.division import Formula, OpenSlot, formula_for, least, open_slots
from placement.candidates.headroom.forms import (
    ENDLESS,
    Cell,
    ClassAmounts,
    CloudInForms,
    OptionRows,
    TreeForm,
    TreesOfForm,
)
from placement.candidates.serving import Serving
from placement.cloud.providers import Flags, Ints, distinct_rows
from placement.domain.search_plan import Choice, Demand, Plan
from placement.domain.tree import Tree

MAX_CHOICES = 5_000
"""How many ways to serve a request in a tree are considered."""

MAX_BUNDLES = 250
"""How many of them are compared, those that take least; each that is packed is a level of the search."""

MAX_CHOICES_IN_ALL = 50_000
"""The same over all forms of trees, for one request; in further ones, the ways remain unknown."""

STEPS_OF_A_TREE = 5_000


@dataclass(frozen=True, slots=True)
class Pooled:
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
            pooled=tuple([replace(slot, own=slot.own[chosen]) for slot in self.pooled]),
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
        self._ways: dict[tuple[int, Sequence[int]], _Ways] = {}
        self._formulas: dict[int, tuple[Sequence[OpenSlot], Formula | None]] = {}

    def counted(self, trees: TreesOfForm, budget: Budget) -> CountedTrees | None:
        """Count in trees of one form; None if they could not serve the plan even if they were empty."""
        slots, formula = self._formula(trees)
        if formula is None:
            return None
        fitting = max_copies = formula.alone(trees)
        for tied in formula.mixed if formula.is_exact else (tuple(range(len(slots))),):
            ways = self._ways_of(trees, slots, tied)
            if not ways.is_possible:
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
        every: list[Mapping[Cell, int]] = [
            {ways.cells[index]: amount for index, amount in bundle.items()} for bundle in ways.every
        ]
        return every if ways.is_every else None

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
        # in_tree keeps the unsuffixed group inside the tree.
        is_inside = demand.resources and demand.group.in_tree is not None and not demand.group.is_granular
        pools = set() if is_inside else {number_at[position] for position in sharing.tolist()}
        for number, form in enumerate([of_form.form for of_form in self.cloud.forms]):
            shared = pools.intersection([pool.number for pool in form.pools])
            rows[number] = sorted({form.own_pools.get(place, place) for place in rows[number]} | shared)
        return rows

    def _formula(self, trees: TreesOfForm) -> tuple[Sequence[OpenSlot], Formula | None]:
        """Return the slots in trees of a form, and how to count there; None if they must not serve, or cannot."""
        number = trees.number
        if number not in self._formulas:
            rows: OptionRows = [of_demand[number] for of_demand in self._options] if self._is_possible[number] else []
            slots = open_slots(self.plan, self.cloud.ids.classes, rows) if rows and all(rows) else []
            formula = formula_for(self.plan, slots, trees.form, self._met(number, slots)) if slots else None
            self._formulas[number] = slots, formula
        return self._formulas[number]

    def _ways_of(self, trees: TreesOfForm, slots: Sequence[OpenSlot], tied: tuple[int, ...]) -> "_Ways":
        """Return the ways of all slots, or of some that are tied only by competing with each other."""
        ways = self._ways.get((trees.number, tied))
        if ways is None:
            plan = self.plan
            if len(tied) < len(slots):
                alone, request = tuple([plan.slots[number] for number in tied]), replace(plan.request, same_subtree=())
                requested = {name for slot in alone for name, _amount in slot.resources}
                contended = tuple([name for name in plan.contended if name in requested])
                plan = replace(plan, slots=alone, request=request, contended=contended, trait_sets=())
            chosen, met = [slots[number] for number in tied], self._met(trees.number, slots)
            ways = _Ways(plan, self.cloud, trees.form, slots=chosen, met=met, composing=self._composing)
            self._ways[trees.number, tied] = ways
        return ways

    def _met(self, number: int, slots: Sequence[OpenSlot]) -> dict[int, int]:
        """Return which trait sets of the unsuffixed group each provider meets that may serve in trees of a form."""
        start, pools = int(self._starts[number]), self.cloud.pools
        places = {place for slot in slots for place in slot.places}
        owners = [self._serving.with_any_trait(any_of) for any_of in self.plan.trait_sets]
        at = {place: pools[place].position if place < 0 else start + place for place in places}
        return {
            place: sum([1 << index for index, flags in enumerate(owners) if flags[position]])
            for place, position in at.items()
        }

    def _pooled(self, slot: OpenSlot, trees: TreesOfForm) -> Pooled:
        own = replace(slot, places=tuple([place for place in slot.places if place >= 0]))
        pools = {place: self.cloud.pools[place].free for place in slot.places if place < 0}
        room = {
            place: min([amounts[class_id] // amount for class_id, amount in slot.amounts], default=ENDLESS)
            for place, amounts in pools.items()
        }
        return Pooled(slot.amounts, own.copies(trees), room)


class _Ways:
    """The ways to serve a plan in trees of one form, whatever is free, composed as candidates are.

    ``slots`` are those of the plan, with the providers that can serve them there; ``met`` the trait sets of the
    unsuffixed group that each provider meets. ``composing`` limits composing, over all forms.
    """

    def __init__(
        self,
        plan: Plan,
        cloud: CloudInForms,
        form: TreeForm,
        *,
        slots: Sequence[OpenSlot],
        met: Mapping[int, int],
        composing: Budget,
    ) -> None:
        self._plan = plan
        self._slots = slots
        self.cells: list[Cell] = sorted({(p, name) for slot in slots for p in slot.places for name, _ in slot.amounts})
        self._number = {cell: index for index, cell in enumerate(self.cells)}
        classes = dict.fromkeys([name for _place, name in self.cells])
        kinds = [[index for cell, index in self._number.items() if cell[1] == name] for name in classes]
        self._packed_by_free: dict[tuple[int, ...], Copies] = {}
        self.every, self.is_every = self._bundles(self._tree(cloud, form, met), form, composing)
        """What ways take, by cell number; and whether no other way is needed to reach the most."""
        self._packing = BundlePacking(self.every, kinds)

    @property
    def is_possible(self) -> bool:
        return bool(self.every) or not self.is_every

    def copies(self, trees: TreesOfForm, bounds: Ints, budget: Budget) -> tuple[Ints, Ints]:
        """Return bounds on how many copies fit into each tree, given upper ones. Equal trees are counted once."""
        rows, numbers, _first = distinct_rows([*map(trees.cell, self.cells), bounds])
        counted = [self._packed(row[:-1], row[-1], budget) for row in rows]
        fitting, at_most = np.array(counted, dtype=np.int64).reshape(-1, 2).T
        return fitting[numbers], at_most[numbers]

    def _packed(self, free: tuple[int, ...], bound: int, budget: Budget) -> Copies:
        if not bound or not self.every:
            return Copies(0, bound)
        if not all(self.every):
            return exactly(bound)  # If a way takes nothing, only the bound limits it.
        if free not in self._packed_by_free:
            self._packed_by_free[free] = self._packing.copies(free, budget=budget.child(STEPS_OF_A_TREE))
        copies = self._packed_by_free[free]
        return Copies(copies.least, min(copies.max_count, bound) if self.is_every else bound)

    def _bundles(self, tree: Tree, form: TreeForm, composing: Budget) -> tuple[list[Bundle], bool]:
        foreign = [pool.root for pool in form.pools if pool.place < 0]
        if self._plan.request.same_subtree and len({*foreign}) < len(foreign):
            return [], False  # How pools in another tree are nested is unknown.
        budget = RequestBudget()
        choices = _isolated(SlotComposer(self._plan, budget).choices(tree), self._slots)
        few = [choice for choice in islice(choices, MAX_CHOICES + 1) if composing.take()]
        takings = sorted({self._taken(choice) for choice in few}, key=lambda taken: sum([much for _, much in taken]))
        bundles = undominated([dict(taken) for taken in takings[:MAX_BUNDLES]])
        is_all = len(few) <= MAX_CHOICES and composing.remaining and not budget.was_hit
        return bundles, bool(is_all) and len(takings) <= MAX_BUNDLES

    def _tree(self, cloud: CloudInForms, form: TreeForm, met: Mapping[int, int]) -> Tree:
        """Return an endlessly roomy tree of the form, where a copy may take no more than max_unit of a class."""
        options: list[list[int]] = [[] for _ in self._plan.demands]
        for slot, planned in zip(self._slots, self._plan.slots, strict=True):
            options[planned.demand] = [*slot.places]
        pools, own = cloud.pools, form.parents_by_place
        foreign = {place for row in options for place in row if place not in own}
        units = {number: pool.max_units for number, pool in pools.items()}
        names = {cloud.ids.classes[name]: name for name in self._plan.contended}
        return Tree(
            root=0,
            options=options,
            room={
                (place, names[name]): form.max_units[place, name] if place >= 0 else units[place][name]
                for place, name in self.cells
                if name in names
            },
            met=met,
            parents={**own, **dict.fromkeys(foreign)},
            root_of={place: pools[place].root for place in foreign},
        )

    def _taken(self, choice: Choice) -> tuple[tuple[int, int], ...]:
        taken: dict[int, int] = {}
        for place, slot in zip(choice, self._slots, strict=True):
            for name, amount in slot.amounts:
                cell = self._number[place, name]
                taken[cell] = taken.get(cell, 0) + amount
        return tuple(sorted(taken.items()))


def _isolated(choices: Iterator[Choice], slots: Sequence[OpenSlot]) -> Iterator[Choice]:
    """Yield the choices in which slots that must not meet have different providers."""
    counted = [(index, slot.isolation) for index, slot in enumerate(slots) if slot.isolation]
    for choice in choices:
        meeting = [(isolation, choice[index]) for index, isolation in counted]
        if len({*meeting}) == len(meeting):
            yield choice


def total(column: Ints) -> int:
    """Return a sum that no column may have room for."""
    return int(column.sum()) if not len(column) or int(column.max()) < 2**62 // len(column) else sum(column.tolist())


def in_all_trees(counted: Iterable[CountedTrees], among: Collection[int] | None = None) -> Copies:
    """Return how many copies fit into the trees with some roots, or all, together, counting what they share once."""
    if among is not None:
        counted = [of_form.chosen(np.isin(of_form.trees.roots, [*among])) for of_form in counted]
    copies, shared = exactly(0), list[CountedTrees]()
    for of_form in counted:
        if of_form.is_shared:
            shared.append(of_form)
        else:
            copies = Copies(copies.least + total(of_form.least), copies.max_count + total(of_form.max_copies))
    joined = _joined(shared) if shared else exactly(0)
    return Copies(copies.least + joined.least, copies.max_count + joined.max_count)


def _joined(shared: Sequence[CountedTrees]) -> Copies:
    """Return bounds on how many copies fit into trees that draw from pools; exact if these serve a single slot."""
    pooled_amounts = {tuple([pooled.amounts for pooled in counted.pooled]) for counted in shared}
    slots = len(min(pooled_amounts)) if len(pooled_amounts) == 1 else 0
    flows = []
    for slot in range(slots):
        # How many copies fit if pools served only this slot: a maximum flow.
        own, demand, room = 0, dict[frozenset[int], int](), dict[int, int]()
        for counted in shared:
            pooled = counted.pooled[slot]
            own += total(np.minimum(counted.without_pools, pooled.own))
            pools = frozenset(pooled.room)
            demand[pools] = demand.get(pools, 0) + total(np.maximum(0, counted.without_pools - pooled.own))
            room |= pooled.room
        flows.append(own + drawn(demand, room))
    # At least the best of them can have its copies.
    fitting = max([int(counted.least.max(initial=0)) for counted in shared])
    if slots == 1:
        return exactly(flows[0])
    return Copies(fitting, min([sum([total(counted.max_copies) for counted in shared]), *flows]))

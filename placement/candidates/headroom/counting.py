"""Counts how many copies of one request fit into every tree of a cloud, and into all of them together."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Copies, drawn, exactly
from placement.candidates.headroom.division import Formula, Least, OneSlot, OpenSlot, formula_for, open_slots
from placement.candidates.headroom.forms import (
    ENDLESS,
    Cell,
    ClassAmounts,
    CloudInForms,
    FreeAmounts,
    TreesOfForm,
)
from placement.candidates.headroom.plans import FormOptions
from placement.candidates.headroom.ways import MAX_CHOICES_IN_ALL, Ways
from placement.cloud.providers import Flags, Ints
from placement.domain.search_plan import Plan


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
        most = formula.alone.copies(free)
        least = most
        for tied in formula.mixed if formula.is_exact else (tuple(range(len(slots))),):
            ways = self._ways_of(trees, slots, tied)
            if not ways.is_possible:
                return None
            at_least, most = ways.copies(free, most, budget)
            least = np.minimum(least, at_least)
        is_divided = formula.is_exact and not formula.mixed
        return CountedTrees(
            trees,
            slots,
            least,
            most,
            without_pools=Least(formula.parts).copies(free) if formula.pooled else most,
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
        ways = self._ways.get((trees.number, tied))
        if ways is None:
            chosen, plan, met = [slots[number] for number in tied], self._sub_plan(tied), self._met(trees.number, slots)
            ways = Ways(plan, self.cloud, trees.form, slots=chosen, met=met, composing=self._composing)
            self._ways[trees.number, tied] = ways
        return ways

    def _met(self, number: int, slots: Sequence[OpenSlot]) -> dict[int, int]:
        """Return which trait sets of the unsuffixed group each provider meets that may serve in trees of a form."""
        places = {place for slot in slots for place in slot.places}
        return self._options.met(number, places) if self.plan.trait_sets else dict.fromkeys(places, 0)

    def _sub_plan(self, numbers: Sequence[int]) -> Plan:
        """Return the plan of all slots, or of some that are tied only by competing with each other."""
        if len(numbers) == len(self.plan.slots):
            return self.plan
        slots = tuple([self.plan.slots[number] for number in numbers])
        asked = {name for slot in slots for name, _amount in slot.resources}
        return replace(
            self.plan,
            slots=slots,
            request=replace(self.plan.request, same_subtree=()),
            contended=tuple([name for name in self.plan.contended if name in asked]),
            trait_sets=(),
        )

    def _pooled(self, slot: OneSlot, free: FreeAmounts) -> Pooled:
        own = tuple([place for place in slot.places if place >= 0])
        pools = {place: self.cloud.pools[place].free for place in slot.places if place < 0}
        room = {
            place: min([much[class_id] // amount for class_id, amount in slot.amounts], default=ENDLESS)
            for place, much in pools.items()
        }
        return Pooled(slot.amounts, OneSlot(own, slot.amounts).copies(free), room)


class PlacedTrees(Protocol):
    """Counts the copies of a request with rules about places, given how many fit without the rules."""

    @property
    def avoided(self) -> Collection[int]:
        """The roots of trees that the request leaves out."""

    def kinds(self, trees: Ints) -> Ints:
        """Return the kind of each tree, by index: trees of a kind with equal bounds have room for as many copies."""

    def in_trees(self, bounds: Mapping[int, int]) -> Mapping[int, Copies]:
        """Return how many copies fit into trees, by root, given how many would without the rules."""

    def in_empty(self, bounds: Mapping[int, int]) -> Mapping[int, Copies]:
        """Return the same for trees that are like these, but empty."""


def as_placed(counted: Sequence[CountedTrees], placed: PlacedTrees) -> list[CountedTrees]:
    """Return how often trees can serve a request with rules about places; pools no longer bound it."""
    kept = [one.chosen(~np.isin(one.trees.roots, [*placed.avoided])) for one in counted] if placed.avoided else counted
    kept = [one for one in kept if len(one.most)]
    looks = [_looks(one, placed) for one in kept]
    bounds = [
        dict(zip(one.trees.roots[first].tolist(), one.most[first].tolist(), strict=True))
        for one, (first, _numbers) in zip(kept, looks, strict=True)
    ]
    found = placed.in_trees({root: most for of_form in bounds for root, most in of_form.items() if most})
    placed_trees = []
    for one, of_form, (_first, numbers) in zip(kept, bounds, looks, strict=True):
        copies = np.array([found.get(root, exactly(0)) for root in of_form], dtype=np.int64)[numbers]
        placed_trees.append(replace(one, least=copies[:, 0], most=copies[:, 1], pooled=()))
    return placed_trees


def _looks(counted: CountedTrees, placed: PlacedTrees) -> tuple[Ints, Ints]:
    """Return the first trees that differ in their kind, or in their copies without rules, and for each tree its equal.

    Both are by position among these trees.
    """
    bounds, numbers = np.unique(counted.most, return_inverse=True)
    looks = placed.kinds(counted.trees.trees) * len(bounds) + numbers
    _looks, first, equal = np.unique(looks, return_index=True, return_inverse=True)
    return first, equal


def total(column: Ints) -> int:
    """Return a sum that no column may have room for."""
    return int(column.sum()) if not len(column) or int(column.max()) < 2**62 // len(column) else sum(column.tolist())


def in_all_trees(counted: Iterable[CountedTrees], among: Collection[int] | None = None) -> Copies:
    """Return how many copies fit into some trees together, counting what they share once.

    Args:
        counted: the trees by form.
        among: the roots of the trees; None for all.
    """
    chosen = [one.among(among) for one in counted]
    alone = [one for one in chosen if not one.is_shared]
    shared = _shared([one for one in chosen if one.is_shared])
    least, most = sum([total(one.least) for one in alone]), sum([total(one.most) for one in alone])
    return Copies(least + shared.least, most + shared.most)


def _shared(joined: Sequence[CountedTrees]) -> Copies:
    """Return bounds on how many copies fit into trees that draw from pools.

    Exact if pools serve a single slot and nothing else is shared. With several such slots, each gives an upper bound,
    and filling the trees one after the other gives a lower one.
    """
    if not joined:
        return Copies(0, 0)
    asked = {tuple([pooled.amounts for pooled in one.pooled]) for one in joined}
    slots = len(min(asked))
    if len(asked) == 1 and slots == 1:
        return exactly(_by_flow(joined, 0))
    most = sum([total(one.most) for one in joined])
    if len(asked) == 1 and slots:
        return Copies(_one_after_the_other(joined), min([most, *[_by_flow(joined, slot) for slot in range(slots)]]))
    # If trees share something unknown, at least the best of them can have its copies.
    return Copies(max([int(one.least.max(initial=0)) for one in joined]), most)


def _by_flow(joined: Sequence[CountedTrees], slot: int) -> int:
    """Return how many copies fit if pools served only one slot: a maximum flow."""
    own, wanted, room = 0, dict[frozenset[int], int](), dict[int, int]()
    for one in joined:
        pooled = one.pooled[slot]
        own += total(np.minimum(one.without_pools, pooled.own))
        pools = frozenset(pooled.room)
        wanted[pools] = wanted.get(pools, 0) + total(np.maximum(0, one.without_pools - pooled.own))
        room |= pooled.room
    return own + drawn(wanted, room)


def _one_after_the_other(joined: Sequence[CountedTrees]) -> int:
    left: dict[tuple[int, int], int] = {}
    copies_in_all = 0
    for one in joined:
        for slot, pooled in enumerate(one.pooled):
            left |= {(slot, pool): left.get((slot, pool), room) for pool, room in pooled.room.items()}
        own = [pooled.own.tolist() for pooled in one.pooled]
        for tree, without_pools in enumerate(one.without_pools.tolist()):
            supplies = [
                own[slot][tree] + sum([left[slot, pool] for pool in pooled.room])
                for slot, pooled in enumerate(one.pooled)
            ]
            copies = min(without_pools, *supplies)
            for slot, pooled in enumerate(one.pooled):
                _take(left, slot, pooled, max(0, copies - own[slot][tree]))
            copies_in_all += copies
    return copies_in_all


def _take(left: dict[tuple[int, int], int], slot: int, pooled: Pooled, units: int) -> None:
    """Take units from the pools of a slot, in any order: which of them others need less is unknown."""
    for pool in pooled.room:
        taken = min(units, left[slot, pool])
        left[slot, pool] -= taken
        units -= taken

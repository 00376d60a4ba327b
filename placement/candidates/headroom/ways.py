"""Packs what formulas cannot count exactly: the ways that candidates take from trees of a form."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Bundle, BundlePacking, Copies, exactly, undominated
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.headroom.division import OpenSlot
from placement.candidates.headroom.forms import Cell, CloudInForms, FreeAmounts, TreeForm, distinct_rows
from placement.cloud.providers import Ints
from placement.domain.inventory import UNBOUNDED
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

MAX_CHOICES = 5_000
"""How many ways to serve a request in a tree are considered."""

MAX_BUNDLES = 250
"""How many of them are compared, those that take least; each that is packed is a level of the search."""

MAX_CHOICES_IN_ALL = 50_000
"""The same over all forms of trees, for one request; in further ones, the ways remain unknown."""

STEPS_OF_A_TREE = 5_000
STEPS_OF_A_WAY = 10


class _Bundles(NamedTuple):
    """What ways take, by cell number; ``complete`` if no other way is needed to reach the most copies."""

    bundles: list[Bundle]
    complete: bool


class Ways:
    """The ways to serve a plan in trees of one form, whatever is free, composed as candidates are.

    Args:
        plan: the plan.
        cloud: the cloud.
        form: how the trees are built.
        slots: the slots of the plan, with the providers that can serve them there.
        met: the trait sets of the unsuffixed group that each provider meets.
        composing: limits composing, over all forms.
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
        self._met = met
        self._form = form
        self._cloud = cloud
        self._cells: list[Cell] = sorted({(p, name) for slot in slots for p in slot.places for name, _ in slot.amounts})
        self._number = {cell: index for index, cell in enumerate(self._cells)}
        by_class: dict[int, list[int]] = {}
        for (_place, name), index in self._number.items():
            by_class.setdefault(name, []).append(index)
        self._kinds = list(by_class.values())
        self._known: dict[tuple[int, ...], Copies] = {}
        self._composing = composing
        self._whatever_is_free = self._bundles([UNBOUNDED] * len(self._cells), RequestBudget())
        self._packing = BundlePacking(self._whatever_is_free.bundles, self._kinds)

    @property
    def is_possible(self) -> bool:
        """Whether there is any way."""
        return bool(self._whatever_is_free.bundles) or not self._whatever_is_free.complete

    def all_ways(self) -> list[Mapping[Cell, int]] | None:
        """Return what ways take of each provider and class, whatever is free; None if there are too many."""
        if not self._whatever_is_free.complete:
            return None
        return [{self._cells[index]: amount for index, amount in one.items()} for one in self._whatever_is_free.bundles]

    def copies(self, free: FreeAmounts, most: Ints, budget: Budget) -> tuple[Ints, Ints]:
        """Return bounds on how many copies fit into each tree. Trees with the same free are counted once.

        Args:
            free: what is free.
            most: known upper bounds.
            budget: limits the steps over all trees.
        """
        rows, numbers, _first = distinct_rows(np.column_stack([free.table(self._cells), most]))
        counted = [self._of(row[:-1], row[-1], budget) for row in rows]
        least, at_most = np.array(counted, dtype=np.int64).reshape(-1, 2).T
        return least[numbers], at_most[numbers]

    def _of(self, free: tuple[int, ...], bound: int, budget: Budget) -> Copies:
        if not bound:
            return exactly(0)
        found = self._known.get(free)
        if found is None:
            found = self._known[free] = self._packed(free, bound, budget.child(STEPS_OF_A_TREE))
        return Copies(found.least, min(found.most, bound))

    def _packed(self, free: tuple[int, ...], bound: int, budget: Budget) -> Copies:
        packing, (bundles, complete) = self._packing, self._whatever_is_free
        if not complete:
            # The less is free, the fewer ways there are.
            bundles, complete = self._bundles(free, RequestBudget(per_request=budget.left))
            budget.take(min(budget.left, STEPS_OF_A_WAY * len(bundles)))
            packing = BundlePacking(bundles, self._kinds)
        if not all(bundles):
            return exactly(bound)  # A way takes nothing, so only the bound limits it.
        found = packing.copies(free, budget=budget)
        return found if complete else Copies(found.least, bound)

    def _bundles(self, free: Sequence[int], budget: RequestBudget) -> _Bundles:
        """Return what the ways take, given what is free."""
        foreign = [pool.root for pool in self._form.pools if pool.place < 0]
        if self._plan.request.same_subtree and len({*foreign}) < len(foreign):
            return _Bundles([], complete=False)  # How pools in another tree are nested is unknown.
        choices = SlotComposer(self._plan, budget).choices(self._tree(free))
        found = [choice for choice in islice(_apart(choices, self._slots), MAX_CHOICES + 1) if self._composing.take()]
        takings = sorted({self._taken(choice) for choice in found}, key=lambda one: sum([much for _, much in one]))
        bundles = undominated([dict(one) for one in takings[:MAX_BUNDLES]])
        is_all = len(found) <= MAX_CHOICES and self._composing.left and not budget.was_hit
        return _Bundles(bundles, complete=bool(is_all) and len(takings) <= MAX_BUNDLES)

    def _tree(self, free: Sequence[int]) -> Tree:
        """Return a tree of the form with this much free; a copy may take no more than max_unit of a class."""
        left = dict(zip(self._cells, free, strict=True))
        options: list[list[int]] = [[] for _ in self._plan.demands]
        for slot, planned in zip(self._slots, self._plan.slots, strict=True):
            options[planned.demand] = [
                place for place in slot.places if all([left[place, name] >= much for name, much in slot.amounts])
            ]
        pools, own = self._cloud.pools, self._form.parents_by_place
        foreign = {place for row in options for place in row if place not in own}
        names = {self._cloud.ids.classes[name]: name for name in self._plan.contended}
        return Tree(
            root=0,
            options=options,
            room={
                (place, names[name]): min(much, self._most_at_once(place, name))
                for (place, name), much in left.items()
                if name in names
            },
            met=self._met,
            parents={**own, **dict.fromkeys(foreign)},
            root_of={place: pools[place].root for place in foreign},
        )

    def _most_at_once(self, place: int, class_id: int) -> int:
        """Return the most of a class that a provider gives one consumer."""
        return self._form.max_units[place, class_id] if place >= 0 else self._cloud.pools[place].max_units[class_id]

    def _taken(self, choice: Choice) -> tuple[tuple[int, int], ...]:
        taken: dict[int, int] = {}
        for place, slot in zip(choice, self._slots, strict=True):
            for name, amount in slot.amounts:
                cell = self._number[place, name]
                taken[cell] = taken.get(cell, 0) + amount
        return tuple(sorted(taken.items()))


def _apart(choices: Iterator[Choice], slots: Sequence[OpenSlot]) -> Iterator[Choice]:
    """Yield the choices in which slots that must not meet have different providers."""
    counted = [(index, slot.apart) for index, slot in enumerate(slots) if slot.apart]
    for choice in choices:
        meeting = [(slot, choice[index]) for index, slot in counted]
        if len({*meeting}) == len(meeting):
            yield choice

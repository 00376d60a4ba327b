"""Packs what formulas cannot count exactly: the ways that candidates take from trees of a form."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Bundle, BundlePacking, Copies, exactly, undominated
from placement.candidates.compose.slots import RequestBudget, SlotComposer
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
        classes = dict.fromkeys([name for _place, name in self._cells])
        self._kinds = [[index for cell, index in self._number.items() if cell[1] == name] for name in classes]
        self._known: dict[tuple[int, ...], Copies] = {}
        self._composing = composing
        self._every, self._is_every = self._bundles([UNBOUNDED] * len(self._cells), RequestBudget())
        """What ways take whatever is free, by cell number; and whether no other way is needed to reach the most."""
        self._packing = BundlePacking(self._every, self._kinds)

    @property
    def is_possible(self) -> bool:
        """Whether there is any way."""
        return bool(self._every) or not self._is_every

    def all_ways(self) -> list[Mapping[Cell, int]] | None:
        """Return what ways take of each provider and class, whatever is free; None if there are too many."""
        if not self._is_every:
            return None
        return [{self._cells[index]: amount for index, amount in bundle.items()} for bundle in self._every]

    def copies(self, free: FreeAmounts, most: Ints, budget: Budget) -> tuple[Ints, Ints]:
        """Return bounds on how many copies fit into each tree. Trees with the same free are counted once.

        Args:
            free: what is free.
            most: known upper bounds.
            budget: limits the steps over all trees.
        """
        rows, numbers, _first = distinct_rows(np.column_stack([free.table(self._cells), most]))
        counted = [self._packed(row[:-1], row[-1], budget) for row in rows]
        least, at_most = np.array(counted, dtype=np.int64).reshape(-1, 2).T
        return least[numbers], at_most[numbers]

    def _packed(self, free: tuple[int, ...], bound: int, budget: Budget) -> Copies:
        if not bound or not all(self._every):
            return exactly(bound)  # If a way takes nothing, only the bound limits it.
        if free not in self._known:
            self._known[free] = self._packed_in(free, bound, budget.child(STEPS_OF_A_TREE))
        known = self._known[free]
        return Copies(known.least, min(known.most, bound))

    def _packed_in(self, free: tuple[int, ...], bound: int, budget: Budget) -> Copies:
        if self._is_every:
            return self._packing.copies(free, budget=budget)
        # The less is free, the fewer ways there are.
        bundles, is_every = self._bundles(free, RequestBudget(per_request=budget.left))
        budget.take(min(budget.left, STEPS_OF_A_WAY * len(bundles)))
        packed = BundlePacking(bundles, self._kinds).copies(free, budget=budget)
        return packed if is_every else Copies(packed.least, bound)

    def _bundles(self, free: Sequence[int], budget: RequestBudget) -> tuple[list[Bundle], bool]:
        """Return what the ways take, given what is free, and whether no other way is needed to reach the most."""
        foreign = [pool.root for pool in self._form.pools if pool.place < 0]
        if self._plan.request.same_subtree and len({*foreign}) < len(foreign):
            return [], False  # How pools in another tree are nested is unknown.
        choices = SlotComposer(self._plan, budget).choices(self._tree(free))
        few = [choice for choice in islice(_apart(choices, self._slots), MAX_CHOICES + 1) if self._composing.take()]
        takings = sorted({self._taken(choice) for choice in few}, key=lambda taken: sum([much for _, much in taken]))
        bundles = undominated([dict(taken) for taken in takings[:MAX_BUNDLES]])
        is_all = len(few) <= MAX_CHOICES and self._composing.left and not budget.was_hit
        return bundles, bool(is_all) and len(takings) <= MAX_BUNDLES

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
                (place, names[name]): min(
                    much, self._form.max_units[place, name] if place >= 0 else pools[place].max_units[name]
                )
                for (place, name), much in left.items()
                if name in names
            },
            met=self._met,
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


def _apart(choices: Iterator[Choice], slots: Sequence[OpenSlot]) -> Iterator[Choice]:
    """Yield the choices in which slots that must not meet have different providers."""
    counted = [(index, slot.apart) for index, slot in enumerate(slots) if slot.apart]
    for choice in choices:
        meeting = [(slot, choice[index]) for index, slot in counted]
        if len({*meeting}) == len(meeting):
            yield choice

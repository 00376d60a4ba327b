"""The ways to serve a request in trees of one form: composed as candidates are, and packed."""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from placement.allocators import Budget
from placement.allocators.bundle_packing import Bundle, BundlePacking, Copies, exactly, undominated
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.candidates.headroom.forms import Cell, CloudInForms, OpenSlot, TreeForm, TreesOfForm
from placement.cloud.providers import Ints, distinct_rows
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

MAX_CHOICES = 5_000
"""How many ways to serve a request in a tree are considered."""

MAX_BUNDLES = 250
"""How many of them are compared, those that take least; each that is packed is a level of the search."""

MAX_CHOICES_IN_ALL = 50_000
"""The same over all forms of trees, for one request; in further ones, the ways remain unknown."""

STEPS_OF_A_TREE = 5_000


class Ways:
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
        # Slots of one isolation have different providers.
        isolated = [(number, slot.isolation) for number, slot in enumerate(self._slots) if slot.isolation]
        budget = RequestBudget()
        choices = (
            choice
            for choice in SlotComposer(self._plan, budget).choices(tree)
            if len({(isolation, choice[number]) for number, isolation in isolated}) == len(isolated)
        )
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

"""What the formulas cannot tell exactly is packed: the ways that candidates of a shape take from its trees."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from placement.allocators.headroom import Budget, Bundle, Copies, exactly, packed, undominated
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.headroom.fleets import Cell, Fleets, TreeShape
from placement.candidates.headroom.formula import OpenSlot
from placement.candidates.headroom.options import Rows
from placement.candidates.headroom.parts import Columns
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

MOST_CHOICES = 10_000
"""Trees with more ways to serve a request are not packed."""

MOST_BUNDLES = 250
"""Neither are those where so many ways take different things. Each is a level of the search."""

STEPS_OF_A_TREE = 20_000


class Ways:
    """The ways to serve a plan in trees of one shape, whatever is free.

    Args:
        cells: the providers and classes that they take of.
        bundles: what each takes, by the number of the cell; None where there are too many to tell.
    """

    def __init__(self, cells: Sequence[Cell], bundles: Sequence[Bundle] | None) -> None:
        self.cells = tuple(cells)
        self.bundles = bundles
        by_class: dict[int, list[int]] = {}
        for number, (_place, name) in enumerate(cells):
            by_class.setdefault(name, []).append(number)
        self._kinds = list(by_class.values())
        self._known: dict[tuple[int, ...], Copies] = {}

    @property
    def is_possible(self) -> bool:
        """Whether there may be any way."""
        return self.bundles is None or bool(self.bundles)

    def copies(self, columns: Columns, most: Sequence[int], budget: Budget) -> list[Copies]:
        """Return how many copies there are in each tree.

        Args:
            columns: what is free.
            most: what is known to bound them.
            budget: how many steps may be taken in all.
        """
        if self.bundles is None:
            return [Copies(0, bound) for bound in most]
        free = zip(*[columns.cell(cell) for cell in self.cells], strict=True) if self.cells else [()] * columns.trees
        return [self._of(of_tree, bound, budget) for of_tree, bound in zip(free, most, strict=True)]

    def _of(self, free: tuple[int, ...], bound: int, budget: Budget) -> Copies:
        if not bound:
            return exactly(0)
        found = self._known.get(free)
        if found is None:
            bundles = self.bundles or ()
            steps = budget.child(STEPS_OF_A_TREE)
            # Where some way takes nothing, nothing but the bound limits it.
            found = packed(bundles, free, self._kinds, budget=steps) if all(bundles) else exactly(bound)
            self._known[free] = found
        return Copies(found.least, min(found.most, bound))


def ways_of(
    plan: Plan, fleets: Fleets, shape: TreeShape, *, rows: Rows, slots: Sequence[OpenSlot], met: Mapping[int, int]
) -> Ways:
    """Return the ways to serve a plan in trees of a shape, as its candidates are composed."""
    if plan.request.same_subtree and any([place < 0 for row in rows for place in row]):
        return Ways((), None)  # What lies above a pool is in another tree.
    budget = RequestBudget()
    choices = SlotComposer(plan, budget).choices(_roomy_tree(plan, fleets, shape, rows=rows, met=met))
    found = list(islice(_apart(choices, slots), MOST_CHOICES + 1))
    if len(found) > MOST_CHOICES or budget.was_hit:
        return Ways((), None)
    taken = {frozenset(_taken(choice, slots).items()): None for choice in found}
    cells = sorted({cell for of in taken for cell, _amount in of})
    number = {cell: index for index, cell in enumerate(cells)}
    bundles = undominated([{number[cell]: amount for cell, amount in of} for of in taken])
    return Ways(cells, bundles if len(bundles) <= MOST_BUNDLES else None)


def _roomy_tree(plan: Plan, fleets: Fleets, shape: TreeShape, *, rows: Rows, met: Mapping[int, int]) -> Tree:
    """Return a tree of the shape in which everything is free: only max_unit bounds what one copy takes."""
    classes, pools = fleets.cloud.classes, fleets.pools
    places = {place for row in rows for place in row}
    rules = {place: shape.rules[place] if place >= 0 else pools[place].units for place in places}
    inside = {pool for place, pool in shape.pools if place >= 0}
    return Tree(
        root=0,
        options=[list(row) for row in rows],
        room={
            (place, name): rules[place][classes[name]][1]
            for name in plan.contended
            for place in places
            if classes[name] in rules[place]
        },
        met=met,
        parents=dict(enumerate([None if parent < 0 else parent for parent in shape.parents])),
        home={place: pools[place].root for place in places if place < 0 and place not in inside},
    )


def _apart(choices: Iterator[Choice], slots: Sequence[OpenSlot]) -> Iterator[Choice]:
    """Yield those choices in which slots that may not meet have different providers."""
    counted = [(index, slot.apart) for index, slot in enumerate(slots) if slot.apart]
    for choice in choices:
        meeting = [(slot, choice[index]) for index, slot in counted]
        if len({*meeting}) == len(meeting):
            yield choice


def _taken(choice: Choice, slots: Sequence[OpenSlot]) -> dict[Cell, int]:
    taken: dict[Cell, int] = {}
    for place, slot in zip(choice, slots, strict=True):
        for name, amount in slot.amounts:
            taken[place, name] = taken.get((place, name), 0) + amount
    return taken

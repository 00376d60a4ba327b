"""Places requirements in a tree of locations: the Group Allocator without its naming syntax.

Exact: finds a placement whenever one exists, the best one in the order of ``Objective``, ties by the natural order of
location names. Where siblings never share a location, tables from the inside out solve it in polynomial time: the
contents of two locations are then independent, so the best a requirement can do at a location is its own gain plus the
best way to spread its parts over the locations inside. A table has the best worth by number of parts of each form, as
those are interchangeable; an enclosing location that nobody asked for is paid for once. Otherwise the ``search`` runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from operator import add, le
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.group.locations import USUAL_RULES, Locations, Objective, Rules, Weights
from placement.allocators.group.requirements import Form, RequirementNode, Requirements
from placement.allocators.group.search import STEPS_OF_A_TRY, BranchAndBound, State
from placement.allocators.group.tree import ANYWHERE, Location, Path, Phase, Placed, Requirement

MAX_REQUIREMENTS = 200
STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Placement:
    """The outcome.

    Args:
        feasible: whether a placement was found.
        complete: whether it is proven optimal, or infeasibility is proven; False only if the budget ran out.
        placed: the requirements with their locations, in the order given; empty if nothing was found.
        objective: the placement's objective; None if nothing was found.
        taken: (location, resource) -> what it adds to usage, in the resource's unit, if anything.
    """

    feasible: bool
    complete: bool
    placed: tuple[Placed, ...] = ()
    objective: Objective | None = None
    taken: Mapping[tuple[Path, str], int] = field(default_factory=dict)


def place(
    root: Location, requirements: Sequence[Requirement], rules: Rules = USUAL_RULES, *, budget: Budget | None = None
) -> Placement:
    """Find the best locations for requirements, one for each container, each served by the root and places inside it.

    By default a million steps are spent, about five for each attempt to put a requirement at a location.

    Raises:
        ValueError: an amount is negative, two sibling locations have the same name, a scorer returned a score outside
            0..1, or there are more than 200 requirements, parts included.

    Two devices; the larger request needs the larger one:

    >>> from placement.allocators.group.tree import Capacity
    >>> small, big = [Location(f"dev{size}", "gpu", {"memory": Capacity(size)}) for size in (16, 24)]
    >>> wanted = Requirement(parts=(Requirement("a", "gpu", {"memory": 10}), Requirement("b", "gpu", {"memory": 20})))
    >>> [part.path for part in place(Location(children=(small, big)), [wanted]).placed[0].parts]
    [(('gpu', 'dev16'),), (('gpu', 'dev24'),)]
    """
    budget = Budget(STEPS) if budget is None else budget
    locations = Locations(root, rules.scorer_for)
    built = Requirements(locations, requirements, distinct=rules.distinct)
    if len(built.in_order) > MAX_REQUIREMENTS:
        raise ValueError(f"At most {MAX_REQUIREMENTS} requirements, their parts included, can be placed at once.")
    if not all([node.viable for node in built.in_order]):
        return Placement(feasible=False, complete=True)
    weights = Weights(locations, rules.levels)
    tables = SiblingTables(locations, weights, built, distinct=rules.distinct)
    if len(built.containers) == 1 and tables.apply_to(built.containers[0]):  # Containers may share locations.
        places, complete = tables.best(built.containers[0]), True
        # This is polynomial and runs to its end regardless of the budget, but leaves less of it to others.
        budget.take(min(budget.remaining, len(tables.served) * STEPS_OF_A_TRY))
    else:
        places = BranchAndBound(locations, weights, built, budget=budget).best()
        complete = not budget.was_hit
    if places is None:
        return Placement(feasible=False, complete=complete)
    state = State(locations, weights, built.in_order).with_all(places)
    placed = tuple([_placed(node, locations, places) for node in built.containers])
    return Placement(feasible=True, complete=complete, placed=placed, objective=state.objective(), taken=state.taken())


def _placed(node: RequirementNode, locations: Locations, places: Mapping[int, int]) -> Placed:
    parts = tuple([_placed(part, locations, places) for part in node.parts_as_given])
    return Placed(node.requirement, locations.all[places[node.index]].path, parts)


MAX_MERGES = 400_000
"""The most pairs of states to merge; beyond that, the search is the better way."""


class SpreadParts(NamedTuple):
    """A way to spread some parts over locations.

    Its worth includes the enclosing locations; the gain is the part of it that is score. ``chosen`` has for each form
    the locations of its parts, ascending.
    """

    worth: int
    gain: int
    chosen: tuple[tuple[int, ...], ...]

    @property
    def rank(self) -> tuple[int, list[int]]:
        """The sort key among ways to spread the same parts: the highest is best, ties by natural order."""
        return self.worth, [-location for locations in self.chosen for location in locations]


SpreadTable = dict[tuple[int, ...], SpreadParts]
"""The number of parts of each form -> the best way to spread so many."""


class ServedRequirement(NamedTuple):
    """The best a requirement can do at a location: worth, score in it, and the locations of its parts by level."""

    worth: int
    gain: int
    inside: tuple[tuple[int, ...], ...]


class SiblingTables:
    """One run. Without it, four shares of different GPUs of sixteen in use take 1.9 s of CPU instead of 16 ms."""

    def __init__(self, locations: Locations, weights: Weights, requirements: Requirements, *, distinct: bool) -> None:
        self._locations = locations
        self._weights = weights
        self._requirements = requirements
        self._distinct = distinct
        self.served: dict[tuple[Form, int], ServedRequirement | None] = {}
        """What each requirement that was tried at a location can do there; None if it does not fit."""

    def apply_to(self, node: RequirementNode) -> bool:
        """Tell whether tables place the parts of a requirement.

        What may be anywhere may share locations. Parts of different levels must not share an enclosing location that
        nobody asked for, and there must not be too many forms.
        """
        levels = _by_level(node.parts)
        # Nothing lies between the locations of a requirement and those of its parts.
        are_direct = all(
            [
                self._locations.all[inner].parent == outer
                for outer in node.viable
                for parts in levels
                for inner in self._locations.below(outer, parts[0].level)
            ]
        )
        exclude_each_other = self._requirements.exclude_each_other
        return (
            all([part.level != ANYWHERE for part in node.parts])
            and all([len(parts) == 1 or self._distinct or exclude_each_other(parts) for parts in levels])
            and (are_direct or len(levels) == 1)
            and all([self._may_be_spread(node, parts, are_direct=are_direct) for parts in levels])
            and all([self.apply_to(part) for part in node.parts])
        )

    def _may_be_spread(self, node: RequirementNode, parts: Sequence[RequirementNode], *, are_direct: bool) -> bool:
        """Tell whether parts can be spread: at a bounded cost, and over locations none of which is inside another."""
        forms = _by_form(parts)
        states = prod([1 + len(of_form) for of_form in forms])
        merges = states * (1 + len(forms) if are_direct else states)
        for location in node.viable:
            inside = self._locations.below(location, parts[0].level)
            is_nested = any([self._locations.below(outer, parts[0].level) for outer in inside])
            if is_nested or merges * len(inside) > MAX_MERGES:
                return False
        return True

    def best(self, node: RequirementNode, location: int = 0) -> dict[int, int] | None:
        """Return the location of a requirement and all its parts by index, ties in their order, or None."""
        served = self._best_at(node, location)
        if served is None:
            return None
        placed = {node.index: location}
        for parts, places in zip(_by_level(node.parts), served.inside, strict=True):
            for part, place in zip(parts, places, strict=True):
                placed |= self.best(part, place) or {}
        return placed

    def _best_at(self, node: RequirementNode, location: int) -> ServedRequirement | None:
        key = (node.form, location)
        if key not in self.served:
            self.served[key] = self._work_out(node, location) if location in node.viable else None
        return self.served[key]

    def _work_out(self, node: RequirementNode, location: int) -> ServedRequirement | None:
        gain = 0
        for base, amount in node.amounts:
            capacity = self._locations.all[location].capacities[base]
            verdict = capacity.scorer.judge(capacity.allocatable, capacity.used, (amount,), node.phase)
            if not verdict.fits:
                return None
            if node.phase is Phase.RUNNING:
                gain += self._locations.scaled(verdict.score) - self._locations.score(capacity)
        worth, inside = gain * self._weights.score, []
        for parts in _by_level(node.parts):
            forms = _by_form(parts)
            places = self._locations.below(location, parts[0].level)
            spread = self._table(location, places, forms).get(tuple(map(len, forms)))
            if spread is None:
                return None
            worth, gain = worth + spread.worth, gain + spread.gain
            inside.append(tuple([place for of_form in spread.chosen for place in of_form]))
        # All best placements of the parts have the same gain, because score outweighs everything else.
        return ServedRequirement(worth + self._worth_around(location, gain), gain, tuple(inside))

    def _worth_around(self, location: int, gain: int) -> int:
        """Return what touching a location is worth if the score in it rises."""
        before = self._locations.all[location].score
        return gain * (2 * before + gain) * self._weights.tightness[location] - self._weights.touch[location]

    def _table(self, outer: int, inside: Sequence[int], forms: Sequence[Sequence[RequirementNode]]) -> SpreadTable:
        """Return the best way to spread each number of parts over some locations inside another one."""
        table: SpreadTable = {(0,) * len(forms): SpreadParts(0, 0, ((),) * len(forms))}
        for child in self._locations.all[outer].children:
            locations = [location for location in inside if child <= location < self._locations.all[child].end]
            if locations == [child]:
                table = _merged(table, self._table_of_one(child, forms), forms)
            elif locations:
                around = {
                    numbers: spread._replace(worth=spread.worth + self._worth_around(child, spread.gain))
                    for numbers, spread in self._table(child, locations, forms).items()
                    if any(numbers)
                }
                table = _merged(table, around, forms)
        return table

    def _table_of_one(self, location: int, forms: Sequence[Sequence[RequirementNode]]) -> SpreadTable:
        """Return what one location can serve: one part of some form."""
        table: SpreadTable = {}
        for index, parts in enumerate(forms):
            served = self._best_at(parts[0], location)
            if served is not None:
                chosen = [(location,) if form == index else () for form in range(len(forms))]
                table[tuple(map(len, chosen))] = SpreadParts(served.worth, served.gain, tuple(chosen))
        return table


def _by_level(parts: Sequence[RequirementNode]) -> list[list[RequirementNode]]:
    return [[part for part in parts if part.level == level] for level in dict.fromkeys([part.level for part in parts])]


def _by_form(parts: Sequence[RequirementNode]) -> list[list[RequirementNode]]:
    return [[part for part in parts if part.form == form] for form in dict.fromkeys([part.form for part in parts])]


def _merged(left: SpreadTable, right: SpreadTable, forms: Sequence[Sequence[RequirementNode]]) -> SpreadTable:
    """Add to a table what further locations, later in natural order, can serve: nothing, or what their table has."""
    best, most_wanted = dict(left), [*map(len, forms)]
    for numbers_left, first in left.items():
        for numbers_right, second in right.items():
            numbers = tuple(map(add, numbers_left, numbers_right))
            if not all(map(le, numbers, most_wanted)):
                continue
            worth, so_far = first.worth + second.worth, best.get(numbers)
            if so_far is not None and worth < so_far.worth:
                continue
            chosen = tuple(map(add, first.chosen, second.chosen))
            joined = SpreadParts(worth, first.gain + second.gain, chosen)
            if so_far is None or joined.rank > so_far.rank:
                best[numbers] = joined
    return best

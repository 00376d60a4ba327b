"""Places requirements in a tree of locations: the Group Allocator without its naming syntax.

Exact: finds a placement whenever one exists, the best one in the order of ``Objective``, ties by the natural order of
location names. Where siblings never share a location, tables solve the problem in polynomial time (``sibling_tables``).
Otherwise a branch-and-bound search runs in a budget. It memoises states by number, as the number alone determines what
can follow, and tries only the first of interchangeable locations. Its upper bound lets every requirement yet to be
placed raise the score by as much as it does at its best location.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placement.allocators import Budget
from placement.allocators.group.locations import USUAL_RULES, Locations, Objective, Rules, ScoredCapacity, Weights
from placement.allocators.group.requirements import OUTERMOST, RequirementNode, Requirements
from placement.allocators.group.sibling_tables import SiblingTables
from placement.allocators.group.state import CapacityState, State
from placement.allocators.group.tree import Location, Path, Phase, Placed, Requirement

MAX_REQUIREMENTS = 200
STEPS = 1_000_000

STEPS_OF_A_TRY = 5
"""The cost, in steps, of trying a requirement at a location."""

LocatedResource = tuple[Path, str]
"""A resource of a location: the location's address and the base name."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The outcome.

    Args:
        feasible: whether a placement was found.
        complete: whether it is proven optimal, or infeasibility is proven; False only if the budget ran out.
        placed: the requirements with their locations, in the order given; empty if nothing was found.
        objective: the placement's objective; None if nothing was found.
        taken: what it adds to usage, in each resource's unit; only resources whose usage changes.
    """

    feasible: bool
    complete: bool
    placed: tuple[Placed, ...] = ()
    objective: Objective | None = None
    taken: Mapping[LocatedResource, int] = field(default_factory=dict)


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
    if tables.applies(built.containers):
        places, complete = tables.best(built.containers[0]), True
        # This is polynomial and runs to its end regardless of the budget, but leaves less of it to others.
        budget.take(min(budget.remaining, tables.tries * STEPS_OF_A_TRY))
    else:
        places = _BranchAndBound(locations, weights, built, budget=budget).best()
        complete = not budget.was_hit
    if places is None:
        return Placement(feasible=False, complete=complete)
    state = State(locations, weights, built.in_order)
    for node in built.in_order:
        after = state.capacities_after(node, places[node.index])
        assert after is not None, "What was found fits."
        state.place(node, places[node.index], after)
    placed = tuple([_placed(node, locations, places) for node in built.containers])
    return Placement(feasible=True, complete=complete, placed=placed, objective=state.objective(), taken=state.taken())


def _placed(node: RequirementNode, locations: Locations, places: Mapping[int, int]) -> Placed:
    parts = tuple([_placed(part, locations, places) for part in node.parts_as_given])
    return Placed(node.requirement, locations.all[places[node.index]].path, parts)


_RatedLocation = tuple[int, int, tuple[tuple[CapacityState, ...], int]]
"""(the gain, the location, its state afterwards)."""


class _BranchAndBound:
    def __init__(self, locations: Locations, weights: Weights, requirements: Requirements, *, budget: Budget) -> None:
        self._requirements = requirements
        self._nodes: Sequence[RequirementNode] = requirements.in_order
        self._state = State(locations, weights, self._nodes)
        self._budget = budget
        self._memo: dict[tuple[int, int], tuple[int, bool]] = {}
        """(depth, number of the state) -> the most that the remaining requirements add, and whether that is exact."""
        self._depth = 0
        self._worth = 0
        self._incumbent: list[int] | None = None
        self._incumbent_worth = 0
        # No placement, whole or partial, is worth as much as this or as little as its negative.
        self._limit = 2 * weights.score * weights.square

        def rise(capacity: ScoredCapacity, amount: int) -> int:
            is_bounded = capacity.scorer.diminishing
            return locations.score(capacity, (amount,)) - locations.score(capacity) if is_bounded else locations.scale

        gains = [0]
        for node in reversed(self._nodes):
            is_running = node.phase is Phase.RUNNING
            places = [locations.all[location].capacities for location in node.viable if is_running]
            rises = [sum([rise(place[base], amount) for base, amount in node.amounts]) for place in places]
            gains.append(gains[-1] + max(rises, default=0))
        tightest = len(locations.all) * weights.square**2
        self._bounds = [gain * weights.score + tightest for gain in reversed(gains)]
        """By depth, the most that all requirements from there on can be worth."""

    def best(self) -> dict[int, int] | None:
        """Return the location of each requirement, by index, as far as found before the budget is hit, or None."""
        worth = self._best(-4 * self._limit)
        locations = None if worth is None else self._first_in_natural_order(worth)
        if self._budget.was_hit:
            locations = self._incumbent
        return None if locations is None else dict(enumerate(locations))

    def _best(self, floor: int) -> int | None:
        """Return the most that the remaining requirements can add, or None if that does not exceed the floor."""
        depth = self._depth
        if depth == len(self._nodes):
            if self._incumbent is None or self._worth > self._incumbent_worth:
                self._incumbent, self._incumbent_worth = list(self._state.where), self._worth
            return 0 if floor < 0 else None
        key = (depth, self._state.number)
        bound, is_exact = self._memo.get(key, (self._limit, False))
        if not is_exact:
            bound = min(bound, self._bounds[depth])
        if is_exact or bound <= floor:
            return bound if bound > floor else None
        best = floor
        for choice in sorted(self._choices(depth), key=lambda choice: -choice[0]):
            better = self._try(choice, best)
            if self._budget.was_hit:
                return None
            best = best if better is None else better
            if best >= bound:
                break
        # If the floor excluded nothing, no placement exists at all, whatever floor is asked for later.
        none_above = floor if floor > -self._limit else -8 * self._limit
        self._memo[key] = (best, True) if best > floor else (none_above, False)
        return best if best > floor else None

    def _try(self, choice: _RatedLocation, floor: int) -> int | None:
        self._take(choice)
        better = self._best(floor - choice[0])
        self._worth -= choice[0]
        self._depth -= 1
        self._state.take_back()
        return None if better is None else better + choice[0]

    def _take(self, choice: _RatedLocation) -> None:
        gain, location, after = choice
        self._state.place(self._nodes[self._depth], location, after)
        self._depth += 1
        self._worth += gain

    def _choices(self, depth: int) -> list[_RatedLocation]:
        """Return a requirement's choices in natural order, one per class of interchangeable locations."""
        node, state = self._nodes[depth], self._state
        around = 0 if node.parent == OUTERMOST else state.where[node.parent]
        tried = set()
        choices = []
        for trail in self._requirements.trails(node, around):
            location, likeness = trail[-1], tuple([state.records[location][4] for location in trail])
            # A sibling that must not share the location may have taken it.
            if likeness in tried or (node.siblings and -node.siblings in state.records[location][2]):
                continue
            tried.add(likeness)
            self._budget.take(STEPS_OF_A_TRY)
            after = state.capacities_after(node, location)
            if after is not None:
                choices.append((state.worth(location, after[1]), location, after))
        return choices

    def _first_in_natural_order(self, target: int) -> list[int] | None:
        """Reconstruct a placement worth the target, giving each requirement the first location that permits it."""
        for depth in range(len(self._nodes)):
            for choice in self._choices(depth):
                met = self._try(choice, target - 1)
                if self._budget.was_hit:
                    return None
                if met is not None:
                    self._take(choice)
                    target -= choice[0]
                    break
        return self._state.where

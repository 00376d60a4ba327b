"""Places requirements in a tree of locations: the Group Allocator without its naming syntax.

Exact: finds a placement whenever one exists, the best one in the order of ``Objective``, ties by the natural order of
location names. Neither labels nor the order of the input matter. Where siblings never share a location, tables solve
the problem in polynomial time (``sibling_tables``). Otherwise a branch-and-bound search over all requirements runs in a
budget. It memoises states by number, as the number alone determines what can follow, and tries only the first of
interchangeable locations. It prunes branches whose upper bound does not beat the incumbent: every requirement yet to be
placed raises the score by as much as it does at its best location.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placement.allocators import Budget
from placement.allocators.group.locations import Locations, ScoredCapacity
from placement.allocators.group.objective import USUAL_RULES, Objective, Rules, Weights
from placement.allocators.group.requirements import RequirementNode, Requirements
from placement.allocators.group.sibling_tables import SiblingTables
from placement.allocators.group.state import OUTERMOST, CapacityState, Option, Pick, Picks, State
from placement.allocators.group.tree import Location, Path, Placed, Requirement

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
        unmet: requirements that would not fit anywhere even alone, if that is why nothing was found.
    """

    feasible: bool
    complete: bool
    placed: tuple[Placed, ...] = ()
    objective: Objective | None = None
    taken: Mapping[LocatedResource, int] = field(default_factory=dict)
    unmet: tuple[Requirement, ...] = ()


def place(
    root: Location, requirements: Sequence[Requirement], rules: Rules = USUAL_RULES, *, budget: Budget | None = None
) -> Placement:
    """Find the best locations for requirements.

    Args:
        root: the locations; each outermost requirement is served by the root and places inside it.
        requirements: one for each container; what they take adds up.
        rules: what makes a placement good.
        budget: the steps to spend, about five for each attempt to put a requirement at a location; by default a
            million.

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
    built = Requirements(locations)
    nodes = built.nodes(requirements)
    if sum([node.size[0] for node in nodes]) > MAX_REQUIREMENTS:
        raise ValueError(f"At most {MAX_REQUIREMENTS} requirements, their parts included, can be placed at once.")
    unmet = tuple([requirement for node in nodes for requirement in _hopeless(node)])
    if unmet:
        return Placement(feasible=False, complete=True, unmet=unmet)
    return _best_placement(locations, built, nodes, rules, budget=budget)


def _best_placement(
    locations: Locations, built: Requirements, nodes: Sequence[RequirementNode], rules: Rules, *, budget: Budget
) -> Placement:
    weights = Weights(locations, rules.levels)
    ordered = sorted(nodes, key=lambda node: node.rank_of_container)
    picks = Picks(locations, ordered, distinct=rules.distinct)
    tables = SiblingTables(locations, weights, built, distinct=rules.distinct)
    if tables.applies(ordered):
        places, complete = tables.best(ordered[0]), True
        # This is polynomial and runs to its end regardless of the budget, but leaves less of it to others.
        budget.take(min(budget.remaining, tables.tries * STEPS_OF_A_TRY))
    else:
        places = _BranchAndBound(locations, weights, picks, budget=budget).best()
        complete = not budget.was_hit
    if places is None:
        return Placement(feasible=False, complete=complete)
    location_of = {id(node): location for node, location in places}
    state = State(locations, weights, picks.all)
    for pick in picks.all:
        after = state.capacities_after(pick, location_of[id(pick.node)])
        assert after is not None, "What was found fits."
        state.place(pick, location_of[id(pick.node)], after)
    placed = tuple([_placed(node, locations, location_of) for node in nodes])
    return Placement(feasible=True, complete=complete, placed=placed, objective=state.objective(), taken=state.taken())


def _hopeless(node: RequirementNode) -> list[Requirement]:
    """Return the innermost requirements that fit nowhere."""
    inside = [requirement for part in node.parts_as_given for requirement in _hopeless(part)]
    return inside or ([] if node.viable else [node.requirement])


def _placed(node: RequirementNode, locations: Locations, location_of: Mapping[int, int]) -> Placed:
    parts = tuple([_placed(part, locations, location_of) for part in node.parts_as_given])
    return Placed(node.requirement, locations.all[location_of[id(node)]].path, parts)


_RatedOption = tuple[int, Option, tuple[tuple[CapacityState, ...], int]]
"""(the gain, the option, the state of its location afterwards)."""


class _BranchAndBound:
    """One search."""

    def __init__(self, locations: Locations, weights: Weights, picks: Picks, *, budget: Budget) -> None:
        self._picks: Sequence[Pick] = picks.all
        self._options = picks.options
        self._state = State(locations, weights, picks.all)
        self._locations = locations
        self._budget = budget
        self._memo: dict[tuple[int, int], tuple[int, bool]] = {}
        """(depth, number of the state) -> the most that the remaining picks add, and whether that is exact."""
        self._taken: list[Option] = []
        self._worth = 0
        self._incumbent: list[Option] | None = None
        self._incumbent_worth = 0
        # No placement, whole or partial, is worth as much as this or as little as its negative.
        self._limit = 2 * weights.score * weights.square
        gains = [0]
        for pick in reversed(self._picks):
            places = [locations.all[location].capacities for location in pick.node.viable if pick.counts]
            rises = [sum([self._rise(place[base], amount) for base, amount in pick.node.amounts]) for place in places]
            gains.append(gains[-1] + max(rises, default=0))
        tightest = len(locations.all) * weights.square**2
        self._bounds = [gain * weights.score + tightest for gain in reversed(gains)]
        """By depth, the most that all picks from there on can be worth."""

    def _rise(self, capacity: ScoredCapacity, amount: int) -> int:
        """Return the most by which an amount can raise the score of a resource."""
        if not capacity.scorer.diminishing:
            return self._locations.scale
        return self._locations.score(capacity, (amount,)) - self._locations.score(capacity)

    def best(self) -> list[tuple[RequirementNode, int]] | None:
        """Return the location of each node in the best placement; if the budget is hit, in the best one found by then.

        None if there is no placement, or none was found.
        """
        worth = self._best(-4 * self._limit)
        options = None if worth is None else self._first_in_natural_order(worth)
        if self._budget.was_hit:
            options = self._incumbent
        if options is None:
            return None
        taken = zip(self._picks, options, strict=True)
        return [pair for pick, option in taken for pair in zip(pick.nodes, option.chain, strict=True)]

    def _best(self, floor: int) -> int | None:
        """Return the most that the remaining picks can add, or None if that does not exceed the floor."""
        depth = len(self._taken)
        if depth == len(self._picks):
            if self._incumbent is None or self._worth > self._incumbent_worth:
                self._incumbent, self._incumbent_worth = list(self._taken), self._worth
            return 0 if floor < 0 else None
        key = (depth, self._state.number)
        bound, is_exact = self._memo.get(key, (self._limit, False))
        if is_exact or bound <= floor:
            return bound if bound > floor else None
        bound = min(bound, self._bounds[depth])
        if bound <= floor:
            return None
        best = self._best_choice(depth, floor, bound)
        if not self._budget.was_hit:
            # If the floor excluded nothing, no placement exists at all, whatever floor is asked for later.
            nothing_above = floor if floor > -self._limit else -8 * self._limit
            self._memo[key] = (nothing_above, False) if best is None else (best, True)
        return best

    def _best_choice(self, depth: int, floor: int, bound: int) -> int | None:
        """Try a pick's choices, the most promising first, until one reaches the upper bound."""
        best = floor
        for choice in sorted(self._choices(depth), key=lambda choice: -choice[0]):
            better = self._try(choice, best)
            if self._budget.was_hit:
                return None
            if better is not None:
                best = better
                if best >= bound:
                    break
        return best if best > floor else None

    def _try(self, choice: _RatedOption, floor: int) -> int | None:
        gain, option, after = choice
        self._state.place(self._picks[len(self._taken)], option.location, after)
        self._taken.append(option)
        self._worth += gain
        better = self._best(floor - gain)
        self._worth -= gain
        self._taken.pop()
        self._state.take_back()
        return None if better is None else better + gain

    def _choices(self, depth: int) -> list[_RatedOption]:
        """Return a pick's choices in natural order, one per class of interchangeable locations."""
        pick, state = self._picks[depth], self._state
        around = 0 if pick.parent == OUTERMOST else state.where[pick.parent]
        tried = set()
        choices = []
        for option in self._options(pick, around):
            likeness = state.likeness(option)
            if likeness in tried or state.is_barred(pick, option.location):
                continue
            tried.add(likeness)
            self._budget.take(STEPS_OF_A_TRY)
            after = state.capacities_after(pick, option.location)
            if after is not None:
                choices.append((state.worth(option.location, after[1]), option, after))
        return choices

    def _first_in_natural_order(self, target: int) -> list[Option] | None:
        """Reconstruct a placement worth the target, giving each pick in turn the first location that permits it."""
        for depth, pick in enumerate(self._picks):
            for gain, option, after in self._choices(depth):
                met = self._try((gain, option, after), target - 1)
                if self._budget.was_hit:
                    return None
                if met is not None:
                    self._state.place(pick, option.location, after)
                    self._taken.append(option)
                    self._worth += gain
                    target -= gain
                    break
        return self._taken

"""Places requirements in a tree of locations: the Group Allocator without its naming syntax.

Exact: finds a placement whenever one exists, the best one in the order of ``Objective``, ties by the natural order of
location names. Neither labels nor the order of the input matter. Where siblings never share a location, assignments
solve the problem in polynomial time. Otherwise a branch-and-bound search runs within a budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placement.allocators.budget import Budget
from placement.allocators.group.apart import Apart
from placement.allocators.group.locations import Locations
from placement.allocators.group.objective import USUAL_RULES, Objective, Rules, weights_for
from placement.allocators.group.requirements import RequirementNode, Requirements
from placement.allocators.group.search import STEPS_OF_A_TRY, BranchAndBound
from placement.allocators.group.state import Picks, State
from placement.allocators.group.tree import Location, Path, Placed, Requirement

MAX_REQUIREMENTS = 200
STEPS = 1_000_000

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
    return _PlacementProblem(root, rules).solve(requirements, Budget(STEPS) if budget is None else budget)


class _PlacementProblem:
    """A tree of locations, ready to place requirements in."""

    def __init__(self, root: Location, rules: Rules) -> None:
        self._rules = rules
        self._locations = Locations(root, rules.scorer_for)
        self._weights = weights_for(self._locations, rules)
        self._requirements = Requirements(self._locations)

    def solve(self, requirements: Sequence[Requirement], budget: Budget) -> Placement:
        given = self._requirements.of(requirements)
        if sum([node.size[0] for node in given]) > MAX_REQUIREMENTS:
            raise ValueError(f"At most {MAX_REQUIREMENTS} requirements, their parts included, can be placed at once.")
        unmet = tuple([requirement for node in given for requirement in _hopeless(node)])
        if unmet:
            return Placement(feasible=False, complete=True, unmet=unmet)
        ordered = sorted(given, key=lambda node: node.rank_of_container)
        apart = Apart(self._locations, self._weights, self._requirements, distinct=self._rules.distinct)
        if apart.applies(ordered):
            best = apart.best(ordered[0])
            # This is polynomial and runs to its end regardless of the budget, but leaves less of it to others.
            budget.take(min(budget.left, apart.tries * STEPS_OF_A_TRY))
            return self._report(given, best, complete=True)
        picks = Picks(self._locations, ordered, distinct=self._rules.distinct)
        result = BranchAndBound(self._locations, self._weights, picks, budget=budget).run()
        return self._report(given, result.places, complete=result.complete)

    def _report(
        self,
        given: Sequence[RequirementNode],
        places: Sequence[tuple[RequirementNode, int]] | None,
        *,
        complete: bool,
    ) -> Placement:
        if places is None:
            return Placement(feasible=False, complete=complete)
        location_of = {id(node): location for node, location in places}
        state = self._replay(given, location_of)
        placed = tuple([self._placed(node, location_of) for node in given])
        return Placement(
            feasible=True,
            complete=complete,
            placed=placed,
            objective=state.objective(),
            taken=state.taken(),
        )

    def _replay(self, given: Sequence[RequirementNode], location_of: Mapping[int, int]) -> State:
        """Rebuild the state with all requirements placed."""
        ordered = sorted(given, key=lambda node: node.rank_of_container)
        picks = Picks(self._locations, ordered, distinct=self._rules.distinct).all
        state = State(self._locations, self._weights, picks)
        for pick in picks:
            location = location_of[id(pick.node)]
            after = state.capacities_after(pick, location)
            if after is None:
                raise AssertionError("What was found does not fit.")
            state.place(pick, location, after)
        return state

    def _placed(self, node: RequirementNode, location_of: Mapping[int, int]) -> Placed:
        parts = tuple([self._placed(part, location_of) for part in node.parts_as_given])
        return Placed(node.requirement, self._locations.all[location_of[id(node)]].path, parts)


def _hopeless(node: RequirementNode) -> list[Requirement]:
    """Return the innermost requirements that fit nowhere."""
    inside = [requirement for part in node.parts_as_given for requirement in _hopeless(part)]
    return inside or ([] if node.viable else [node.requirement])

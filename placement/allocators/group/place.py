"""Placing demands in a tree of locations: the Group Allocator without its syntax of names.

Exact: if there is a placement it is found, and it is the best one in the order of ``Objective``, then in the natural
order of the locations' names. Neither the labels of demands nor the order of anything given matter. Assignments decide
where siblings never share a location, which is polynomial; otherwise a search, which has a budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placement.allocators.group.apart import Apart
from placement.allocators.group.needs import Need, Needs
from placement.allocators.group.objective import Objective
from placement.allocators.group.rules import USUAL_RULES, Rules, weights_for
from placement.allocators.group.search import Search
from placement.allocators.group.sites import Sites
from placement.allocators.group.state import State
from placement.allocators.group.steps import Steps
from placement.allocators.group.tree import Demand, Location, Path, Placed

MOST_DEMANDS = 200

Resource = tuple[Path, str]
"""A resource of a location: where it is and its base name."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What came out.

    Args:
        feasible: whether a placement was found.
        complete: whether that is certain: it is the best one, or there is none. False only if the budget ended.
        placed: the demands with their locations, in the order given; empty if nothing was found.
        objective: how good the placement is; None if nothing was found.
        taken: what it adds to what is in use, in the unit of each resource; only resources where it adds something.
        unmet: demands that would not fit anywhere even alone, if that is the reason why nothing was found.
        looks: how many times a demand was tried at a location.
    """

    feasible: bool
    complete: bool
    placed: tuple[Placed, ...] = ()
    objective: Objective | None = None
    taken: Mapping[Resource, int] = field(default_factory=dict)
    unmet: tuple[Demand, ...] = ()
    looks: int = 0


def place(root: Location, demands: Sequence[Demand], rules: Rules = USUAL_RULES) -> Placement:
    """Find the best locations for demands.

    Args:
        root: the locations; each outermost demand is served by the root and places inside it.
        demands: one for each container; what they take adds up.
        rules: what is good.

    Raises:
        ValueError: an amount is negative, two locations beside each other are called the same, a scorer returned a
            score outside 0..1, or there are more than 200 demands, their parts included.

    Two devices; the bigger request needs the bigger one:

    >>> from placement.allocators.group.tree import Capacity
    >>> small, big = [Location(f"dev{size}", "gpu", {"memory": Capacity(size)}) for size in (16, 24)]
    >>> wanted = Demand(parts=(Demand("a", "gpu", {"memory": 10}), Demand("b", "gpu", {"memory": 20})))
    >>> [part.path for part in place(Location(children=(small, big)), [wanted]).placed[0].parts]
    [(('gpu', 'dev16'),), (('gpu', 'dev24'),)]
    """
    return _Problem(root, rules).solve(demands)


class _Problem:
    """A tree of locations, ready for demands."""

    def __init__(self, root: Location, rules: Rules) -> None:
        self._rules = rules
        self._sites = Sites(root, rules.scorer_for)
        self._weights = weights_for(self._sites, rules)
        self._needs = Needs(self._sites)

    def solve(self, demands: Sequence[Demand]) -> Placement:
        given = self._needs.of(demands)
        if sum([need.size[0] for need in given]) > MOST_DEMANDS:
            raise ValueError(f"At most {MOST_DEMANDS} demands, their parts included, can be placed at once.")
        unmet = tuple([demand for need in given for demand in _hopeless(need)])
        if unmet:
            return Placement(feasible=False, complete=True, unmet=unmet)
        ordered = sorted(given, key=lambda need: need.rank_of_container)
        apart = Apart(self._sites, self._weights, self._needs, distinct=self._rules.distinct)
        if apart.applies(ordered):
            return self._report(given, apart.best(ordered[0]), complete=True, looks=apart.looks)
        steps = Steps(self._sites, ordered, distinct=self._rules.distinct)
        found = Search(self._sites, self._weights, steps, budget=self._rules.budget).run()
        return self._report(given, found.places, complete=found.complete, looks=found.looks)

    def _report(
        self, given: Sequence[Need], places: Sequence[tuple[Need, int]] | None, *, complete: bool, looks: int
    ) -> Placement:
        if places is None:
            return Placement(feasible=False, complete=complete, looks=looks)
        site_of = {id(need): site for need, site in places}
        state = self._replay(given, site_of)
        placed = tuple([self._placed(need, site_of) for need in given])
        return Placement(
            feasible=True,
            complete=complete,
            placed=placed,
            objective=state.objective(),
            taken=state.taken(),
            looks=looks,
        )

    def _replay(self, given: Sequence[Need], site_of: Mapping[int, int]) -> State:
        """Return the state after all needs are placed."""
        ordered = sorted(given, key=lambda need: need.rank_of_container)
        steps = Steps(self._sites, ordered, distinct=self._rules.distinct).all
        state = State(self._sites, self._weights, steps)
        for step in steps:
            site = site_of[id(step.need)]
            after = state.cells_after(step, site)
            if after is None:
                raise AssertionError("What was found does not fit.")
            state.place(step, site, after)
        return state

    def _placed(self, need: Need, site_of: Mapping[int, int]) -> Placed:
        parts = tuple([self._placed(part, site_of) for part in need.parts_as_given])
        return Placed(need.demand, self._sites.all[site_of[id(need)]].path, parts)


def _hopeless(need: Need) -> list[Demand]:
    """Return the innermost demands that fit nowhere."""
    inside = [demand for part in need.parts_as_given for demand in _hopeless(part)]
    return inside or ([] if need.viable else [need.demand])

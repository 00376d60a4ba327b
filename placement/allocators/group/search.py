"""Branch and bound over all requirements, for the general case in which siblings may share a location.

Exact within the budget. States are memoised by number, as the number alone determines what can follow. Of
interchangeable locations only the first is tried (symmetry breaking). Branches are pruned whose upper bound does not
beat the incumbent: every requirement yet to be placed raises the score by as much as it does at its best location.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from placement.allocators.budget import Budget
from placement.allocators.group.locations import Locations, ScoredCapacity
from placement.allocators.group.objective import Weights
from placement.allocators.group.requirements import RequirementNode
from placement.allocators.group.state import OUTERMOST, CapacityState, Option, Pick, Picks, State

STEPS_OF_A_TRY = 5
"""The cost, in steps, of trying a requirement at a location."""

Prospect = tuple[int, Option, tuple[tuple[CapacityState, ...], int]]
"""(the gain, the option, the state of its location afterwards)."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Args:
        places: the location of each node; None if nothing was found.
        complete: whether the result is proven: this is the best placement, or there is none.
    """

    places: list[tuple[RequirementNode, int]] | None
    complete: bool


class BranchAndBound:
    """One search.

    Args:
        locations: the locations.
        weights: how the objective is packed.
        picks: what to place.
        budget: the steps to spend.
    """

    def __init__(self, locations: Locations, weights: Weights, picks: Picks, *, budget: Budget) -> None:
        self._picks: Sequence[Pick] = picks.all
        self._options = picks.options
        self._state = State(locations, weights, picks.all)
        self._locations = locations
        self._score = weights.score
        self._promises = self._sums_of_promises()
        self._tightest = len(locations.all) * weights.square**2
        self._budget = budget
        self._known: dict[tuple[int, int], tuple[int, bool]] = {}
        self._taken: list[Option] = []
        self._first: list[Option] | None = None
        self._first_worth = 0
        # No placement, whole or partial, is worth as much as this or as little as its negative.
        self._limit = 2 * weights.score * weights.square
        self._worth = 0

    def run(self) -> SearchResult:
        """Find the best placement."""
        best = self._best(-4 * self._limit)
        options = None if best is None else self._first_in_natural_order(best)
        if self._is_over:
            return SearchResult(self._places(self._first), complete=False)
        return SearchResult(self._places(options), complete=True)

    def _sums_of_promises(self) -> list[int]:
        """Return by depth the most by which all picks from there on can raise the sum of scores."""
        sums = [0]
        for pick in reversed(self._picks):
            sums.append(sums[-1] + (self._promise(pick) if pick.counts else 0))
        return sums[::-1]

    def _promise(self, pick: Pick) -> int:
        places = [self._locations.all[location].capacities for location in pick.node.viable]
        gains = [sum([self._rise(place[base], amount) for base, amount in pick.node.amounts]) for place in places]
        return max(gains, default=0)

    def _rise(self, capacity: ScoredCapacity, amount: int) -> int:
        if not capacity.scorer.diminishing:
            return self._locations.scale
        return self._locations.score(capacity, (amount,)) - self._locations.score(capacity)

    def _places(self, options: Sequence[Option] | None) -> list[tuple[RequirementNode, int]] | None:
        if options is None:
            return None
        taken = zip(self._picks, options, strict=True)
        return [pair for pick, option in taken for pair in zip(pick.nodes, option.chain, strict=True)]

    def _best(self, floor: int) -> int | None:
        """Return the most that the remaining picks can add, or None if that does not exceed the floor."""
        depth = len(self._taken)
        if depth == len(self._picks):
            return self._arrive(floor)
        key = (depth, self._state.number)
        known, is_exact = self._known.get(key, (self._limit, False))
        if is_exact or known <= floor:
            return known if known > floor else None
        bound = min(known, self._promises[depth] * self._score + self._tightest)
        best = self._best_choice(depth, floor, bound) if bound > floor else None
        if bound > floor and not self._is_over:
            self._known[key] = (best, True) if best is not None else (self._nothing_above(floor), False)
        return best

    def _best_choice(self, depth: int, floor: int, bound: int) -> int | None:
        """Try a pick's choices until one reaches the upper bound."""
        best = floor
        for choice in self._choices(depth):
            better = self._try(choice, best)
            if self._is_over:
                return None
            if better is not None:
                best = better
                if best >= bound:
                    break
        return best if best > floor else None

    @property
    def _is_over(self) -> bool:
        return self._budget.was_hit

    def _nothing_above(self, floor: int) -> int:
        """Return the upper bound proven by a search that found nothing above its floor."""
        # If the floor excluded nothing, no placement exists at all, whatever floor is asked for later.
        return floor if floor > -self._limit else -8 * self._limit

    def _arrive(self, floor: int) -> int | None:
        """Keep the best complete placement so far, to fall back on if the budget runs out."""
        if self._first is None or self._worth > self._first_worth:
            self._first, self._first_worth = list(self._taken), self._worth
        return 0 if floor < 0 else None

    def _try(self, choice: Prospect, floor: int) -> int | None:
        gain, option, after = choice
        self._state.place(self._picks[len(self._taken)], option.location, after)
        self._taken.append(option)
        self._worth += gain
        better = self._best(floor - gain)
        self._worth -= gain
        self._taken.pop()
        self._state.take_back()
        return None if better is None else better + gain

    def _choices(self, depth: int) -> list[Prospect]:
        """Return a pick's choices, the most promising first."""
        return sorted(self._possible(depth), key=lambda choice: -choice[0])

    def _possible(self, depth: int) -> list[Prospect]:
        """Return a pick's choices in natural order, one per class of interchangeable locations."""
        pick, state = self._picks[depth], self._state
        around = 0 if pick.parent == OUTERMOST else state.where[pick.parent]
        seen = set()
        found = []
        for option in self._options(pick, around):
            likeness = state.likeness(option)
            if likeness in seen or state.is_barred(pick, option.location):
                continue
            seen.add(likeness)
            self._budget.take(STEPS_OF_A_TRY)
            after = state.capacities_after(pick, option.location)
            if after is not None:
                found.append((state.worth(option.location, after[1]), option, after))
        return found

    def _first_in_natural_order(self, target: int) -> list[Option] | None:
        """Reconstruct a placement worth the target, giving each pick in turn the first location that permits it."""
        for depth, pick in enumerate(self._picks):
            for gain, option, after in self._possible(depth):
                met = self._try((gain, option, after), target - 1)
                if self._is_over:
                    return None
                if met is not None:
                    self._state.place(pick, option.location, after)
                    self._taken.append(option)
                    self._worth += gain
                    target -= gain
                    break
        return self._taken

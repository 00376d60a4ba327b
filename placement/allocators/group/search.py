"""The Group Allocator's search: branch and bound over the usage of locations, in a budget.

Two locations are equivalent, and share a number, if they and everything inside have the same resources, usage and
requirements waiting for parts; the same can follow, up to names. So the search tries only the first of interchangeable
locations, and memoises what it found for a state by its number. Its upper bound lets every requirement yet to be placed
raise the score by as much as it does at its best location.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from placement.allocators import Budget
from placement.allocators.group.locations import Locations, Objective, ScoredCapacity, Weights
from placement.allocators.group.requirements import OUTERMOST, RequirementNode, Requirements
from placement.allocators.group.tree import ANYWHERE, Path, Phase, Used

STEPS_OF_A_TRY = 5
"""The cost, in steps, of trying a requirement at a location."""

CapacityState = tuple[Used, tuple[int, ...], int, Used, int]
"""(used before the container, the container's requests so far, the container or SETTLED, used now, score)."""

Record = tuple[tuple[CapacityState, ...], bool, tuple[int, ...], int, int]
"""(states of the capacities, is touched, notes, sum of scores here and inside, number of the state)."""

SETTLED = -1


class State:
    """The state of all locations. The requirements that will be placed determine which resources can change."""

    def __init__(self, locations: Locations, weights: Weights, requirements: Sequence[RequirementNode]) -> None:
        self._locations = locations
        self._weights = weights
        self._requirements = requirements
        self._numbers: dict[object, int] = {}
        self._moves: dict[object, CapacityState | None] = {}
        self._positions, self._kinds, self._fixed = list[dict[str, int]](), list[list[int]](), list[int]()
        """By location: each requested resource's position, the kinds of these resources, and a number for everything
        that is neither its state nor inside it."""
        self._number_what_stays()
        self.where = [0] * len(requirements)
        """The location of each requirement, once it is placed."""
        self.records: list[Record] = [((), False, (), 0, 0)] * len(locations.all)
        self._log: list[list[tuple[int, Record]]] = []
        for place in reversed(locations.all):
            changing = [place.capacities[base] for base in self._positions[place.index]]
            states = [(capacity.used, (), SETTLED, capacity.used, locations.score(capacity)) for capacity in changing]
            self.records[place.index] = self._record(place.index, tuple(states), place.score, touched=False, notes=())

    def _number(self, value: object) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _number_what_stays(self) -> None:
        bases_of_levels: dict[str, set[str]] = {}
        for node in self._requirements:
            bases_of_levels.setdefault(node.level, set()).update([base for base, _amount in node.amounts])
        restrictions = list(dict.fromkeys([node.requirement.only for node in self._requirements]))
        for location in self._locations.all:
            of_level = bases_of_levels.get(location.level, set()) | bases_of_levels.get(ANYWHERE, set())
            bases = sorted([base for base in location.capacities if base in of_level])
            kinds = [self._number(("kind", location.capacities[base][:2])) for base in bases]
            inside = sum([self._locations.all[child].score for child in location.children])
            changing = sum([self._locations.score(location.capacities[base]) for base in bases])
            allowed = tuple([only is None or location.path in only for only in restrictions])
            score = location.score - inside - changing
            staying = (location.level, tuple(bases), tuple(kinds), location.keys, score, allowed)
            self._positions.append({base: position for position, base in enumerate(bases)})
            self._kinds.append(kinds)
            self._fixed.append(self._number(("fixed", staying)))

    def _record(
        self, location: int, capacities: tuple[CapacityState, ...], score: int, *, touched: bool, notes: tuple[int, ...]
    ) -> Record:
        inside = tuple(sorted([self.records[child][4] for child in self._locations.all[location].children]))
        number = self._number((self._fixed[location], capacities, touched, notes, inside))
        return capacities, touched, notes, score, number

    def capacities_after(self, node: RequirementNode, location: int) -> tuple[tuple[CapacityState, ...], int] | None:
        """Return a location's capacities with a requirement on it, and the gain in score; None if it does not fit."""
        before = self.records[location][0]
        if not node.amounts:
            return before, 0
        capacities = list(before)
        positions, kinds, resources = self._positions[location], self._kinds[location], self._locations.all[location]
        gain = 0
        for base, amount in node.amounts:
            position = positions[base]
            old = capacities[position]
            key = (kinds[position], old, amount, node.phase, node.container)
            if key not in self._moves:
                self._moves[key] = self._judged(node, old, amount, capacity=resources.capacities[base])
            if (new := self._moves[key]) is None:
                return None
            capacities[position] = new
            gain += new[4] - old[4]
        return tuple(capacities), gain

    def _judged(
        self, node: RequirementNode, old: CapacityState, amount: int, *, capacity: ScoredCapacity
    ) -> CapacityState | None:
        before, requests, container, now, score = old
        if container != node.container:
            before, requests = now, ()
        requests = tuple(sorted((*requests, amount)))
        scorer = capacity.scorer
        verdict = scorer.judge(capacity.allocatable, before, requests, node.phase)
        if not verdict.fits:
            return None
        if node.phase is Phase.RUNNING:
            score = self._locations.scaled(verdict.score)
        if scorer.adds_up:
            if node.phase is Phase.RUNNING:
                return verdict.used, (), SETTLED, verdict.used, score
            requests = (sum(requests),)
        return before, requests, node.container, verdict.used, score

    def worth(self, location: int, gain: int) -> int:
        """Return the objective's gain when a requirement raises the sum of scores in a location."""
        worth = gain * self._weights.score
        touch, tightness = self._weights.touch, self._weights.tightness
        while location > 0:
            _capacities, touched, _notes, score, _number = self.records[location]
            if not touched:
                worth -= touch[location]
            if gain:
                worth += gain * (2 * score + gain) * tightness[location]
            location = self._locations.all[location].parent
        return worth

    def place(self, node: RequirementNode, location: int, after: tuple[tuple[CapacityState, ...], int]) -> None:
        """Put a requirement at a location, given the result of ``capacities_after``."""
        log: list[tuple[int, Record]] = []
        self._log.append(log)
        capacities, gain = after
        self.where[node.index] = location
        notes = self.records[location][2]
        if node.notes:
            notes = tuple(sorted((*notes, *node.notes)))
        self._climb(location, log, capacities=capacities, notes=notes, gain=gain)
        for index, note in node.ends:
            place = self.where[index]
            record = self.records[place]
            notes_left = list(record[2])
            notes_left.remove(note)
            self._climb(place, log, capacities=record[0], notes=tuple(notes_left), gain=0)

    def with_all(self, places: Mapping[int, int]) -> "State":
        """Put each requirement, by index, where it fits."""
        for node in self._requirements:
            after = self.capacities_after(node, places[node.index])
            assert after is not None, "What was found fits."
            self.place(node, places[node.index], after)
        return self

    def _climb(
        self,
        location: int,
        log: list[tuple[int, Record]],
        *,
        capacities: tuple[CapacityState, ...],
        notes: tuple[int, ...],
        gain: int,
    ) -> None:
        """Replace the records of a location and all enclosing ones, logging the old ones."""
        changed = location
        while location >= 0:
            old = self.records[location]
            log.append((location, old))
            if location != changed:
                capacities, _touched, notes, _score, _number = old
            self.records[location] = self._record(location, capacities, old[3] + gain, touched=True, notes=notes)
            location = self._locations.all[location].parent

    def take_back(self) -> None:
        """Undo the last ``place``."""
        for location, record in reversed(self._log.pop()):
            self.records[location] = record

    def objective(self) -> Objective:
        """Return the objective of the state."""
        locations, weights = self._locations, self._weights
        inside = zip(locations.all[1:], self.records[1:], strict=True)
        counts = Counter([location.level for location, (_capacities, is_touched, *_state) in inside if is_touched])
        tightness = sum(
            [record[3] ** 2 * factor for record, factor in zip(self.records, weights.tightness, strict=True)]
        )
        total = Fraction(self.records[0][3], locations.scale)
        touched = tuple([counts[level] for level in weights.levels])
        return Objective(total / max(1, locations.all[0].keys), touched, Fraction(tightness, weights.square**2), total)

    def taken(self) -> dict[tuple[Path, str], int]:
        """Return (location, resource) -> the increase in usage."""
        taken = {}
        before_and_after = zip(self._locations.all, self._positions, self.records, strict=True)
        for location, positions, (capacities, *_unchanged) in before_and_after:
            for base, position in positions.items():
                added = capacities[position][3].total - location.capacities[base].used.total
                if added:
                    taken[location.path, base] = added
        return taken


_RatedLocation = tuple[int, int, tuple[tuple[CapacityState, ...], int]]
"""(the gain, the location, its state afterwards)."""


class BranchAndBound:
    """One search for the best placement."""

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
        key = (depth, self._state.records[0][4])
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

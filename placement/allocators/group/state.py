"""Usage by location while requirements are placed and taken back; equivalent states share a number.

Two locations are equivalent if they and everything inside have the same resources, usage and requirements waiting for
parts; names do not count. The same can follow, up to names. So the search tries one of several equivalent locations,
and memoises what it found for a state by its number.
"""

from collections.abc import Sequence

from placement.allocators.group.locations import Locations, ScoredCapacity
from placement.allocators.group.objective import Objective, Weights, objective_of
from placement.allocators.group.picks import Option, Pick
from placement.allocators.group.scorers import Scorer, Used
from placement.allocators.group.tree import Path

CapacityState = tuple[Used, tuple[int, ...], int, Used, int]
"""(used before the container, the container's requests so far, the container or SETTLED, used now, score)."""

Record = tuple[tuple[CapacityState, ...], bool, tuple[int, ...], int, int]
"""(states of the capacities, is touched, notes, sum of scores here and inside, number of the state)."""

SETTLED = -1


class State:
    """The state of all locations.

    Args:
        locations: the locations.
        weights: how the objective is packed.
        picks: those that will be placed; they determine which resources can change.
    """

    def __init__(self, locations: Locations, weights: Weights, picks: Sequence[Pick]) -> None:
        self._locations = locations
        self._weights = weights
        self._picks = picks
        self._numbers: dict[object, int] = {}
        self._moves: dict[object, CapacityState | None] = {}
        self._kind_values: list[tuple[int, Scorer]] = []
        self._positions, self._kinds = self._capacities_that_change()
        self._fixed = self._what_stays()
        self.where = [0] * len(picks)
        """Pick -> its location, once it is placed."""
        self.records: list[Record] = [((), False, (), 0, 0)] * len(locations.all)
        self._log: list[list[tuple[int, Record]]] = []
        for location in reversed(range(len(locations.all))):
            self.records[location] = self._first_record(location)

    def _capacities_that_change(self) -> tuple[list[dict[str, int]], list[list[int]]]:
        """Return by location: each requested resource's position, and the kinds of these resources."""
        asked: dict[str, set[str]] = {}
        for pick in self._picks:
            asked.setdefault(pick.node.level, set()).update([base for base, _amount in pick.node.amounts])
        positions, kinds = [], []
        for location in self._locations.all:
            bases = sorted([base for base in location.capacities if base in asked.get(location.level, ())])
            positions.append({base: position for position, base in enumerate(bases)})
            kinds.append([self._kind(location.capacities[base]) for base in bases])
        return positions, kinds

    def _kind(self, capacity: ScoredCapacity) -> int:
        kind = (capacity.allocatable, capacity.scorer)
        if kind not in self._kind_values:
            self._kind_values.append(kind)
        return self._kind_values.index(kind)

    def _number(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    def _what_stays(self) -> list[int]:
        """Return by location a number for everything that is neither its state nor inside it."""
        pinned = {node.requirement.pinned for pick in self._picks for node in pick.nodes}
        numbers = []
        for location, positions, kinds in zip(self._locations.all, self._positions, self._kinds, strict=True):
            inside = sum([self._locations.all[child].score for child in location.children])
            changing = sum([self._locations.score(location.capacities[base]) for base in positions])
            pin = location.path if location.path in pinned else ()
            staying = (
                location.level,
                tuple(positions),
                tuple(kinds),
                location.keys,
                location.score - inside - changing,
                pin,
            )
            numbers.append(self._number(("fixed", staying)))
        return numbers

    def _first_record(self, location: int) -> Record:
        node = self._locations.all[location]
        capacities: list[CapacityState] = []
        for base in self._positions[location]:
            capacity = node.capacities[base]
            capacities.append((capacity.used, (), SETTLED, capacity.used, self._locations.score(capacity)))
        return self._record(location, tuple(capacities), node.score, touched=False, notes=())

    def _record(
        self, location: int, capacities: tuple[CapacityState, ...], score: int, *, touched: bool, notes: tuple[int, ...]
    ) -> Record:
        inside = tuple(sorted([self.records[child][4] for child in self._locations.all[location].children]))
        number = self._number((self._fixed[location], capacities, touched, notes, inside))
        return capacities, touched, notes, score, number

    @property
    def number(self) -> int:
        """The number that identifies the state of the whole tree."""
        return self.records[0][4]

    def likeness(self, option: Option) -> tuple[int, ...]:
        """Return a key that interchangeable options inside one location share."""
        return tuple([self.records[location][4] for location in option.trail])

    def is_barred(self, pick: Pick, location: int) -> bool:
        """Tell whether a sibling that must not share the location has taken it."""
        return pick.siblings > 0 and -pick.siblings in self.records[location][2]

    def capacities_after(self, pick: Pick, location: int) -> tuple[tuple[CapacityState, ...], int] | None:
        """Return a location's capacities with a pick on it, and the gain in score; None if it does not fit."""
        before = self.records[location][0]
        if not pick.node.amounts:
            return before, 0
        capacities = list(before)
        positions, kinds = self._positions[location], self._kinds[location]
        gain = 0
        for base, amount in pick.node.amounts:
            position = positions[base]
            old = capacities[position]
            new = self._move(kinds[position], old, amount, pick)
            if new is None:
                return None
            capacities[position] = new
            gain += new[4] - old[4]
        return tuple(capacities), gain

    def _move(self, kind: int, old: CapacityState, amount: int, pick: Pick) -> CapacityState | None:
        key = (kind, old, amount, pick.node.phase, pick.container)
        try:
            return self._moves[key]
        except KeyError:
            new = self._moves[key] = self._judged(pick, old, amount, kind)
            return new

    def _judged(self, pick: Pick, old: CapacityState, amount: int, kind: int) -> CapacityState | None:
        before, asked, container, now, score = old
        if container != pick.container:
            before, asked = now, ()
        asked = tuple(sorted((*asked, amount)))
        allocatable, scorer = self._kind_values[kind]
        verdict = scorer.judge(allocatable, before, asked, pick.node.phase)
        if not verdict.fits:
            return None
        if pick.counts:
            score = self._locations.scaled(verdict.score)
        if scorer.adds_up:
            if pick.counts:
                return verdict.used, (), SETTLED, verdict.used, score
            asked = (sum(asked),)
        return before, asked, pick.container, verdict.used, score

    def worth(self, location: int, gain: int) -> int:
        """Return the objective's gain when a pick raises the sum of scores in a location."""
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

    def place(self, pick: Pick, location: int, after: tuple[tuple[CapacityState, ...], int]) -> None:
        """Put a pick at a location, given the result of ``capacities_after``."""
        log: list[tuple[int, Record]] = []
        self._log.append(log)
        capacities, gain = after
        self.where[pick.index] = location
        notes = self.records[location][2]
        if pick.notes:
            notes = tuple(sorted((*notes, *pick.notes)))
        self._climb(location, log, capacities=capacities, notes=notes, gain=gain)
        for other, note in pick.ends:
            place = self.where[other]
            record = self.records[place]
            left = list(record[2])
            left.remove(note)
            self._climb(place, log, capacities=record[0], notes=tuple(left), gain=0)

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
        old = self.records[location]
        log.append((location, old))
        self.records[location] = self._record(location, capacities, old[3] + gain, touched=True, notes=notes)
        location = self._locations.all[location].parent
        while location >= 0:
            capacities, _touched, notes, score, _number = old = self.records[location]
            log.append((location, old))
            self.records[location] = self._record(location, capacities, score + gain, touched=True, notes=notes)
            location = self._locations.all[location].parent

    def take_back(self) -> None:
        """Undo the last ``place``."""
        for location, record in reversed(self._log.pop()):
            self.records[location] = record

    def objective(self) -> Objective:
        """Return the objective of the state."""
        touched = [location for location, record in enumerate(self.records) if record[1]]
        return objective_of(self._locations, self._weights, [record[3] for record in self.records], touched)

    def taken(self) -> dict[tuple[Path, str], int]:
        """Return (location, resource) -> the increase in usage."""
        taken = {}
        before_and_after = zip(self._locations.all, self._positions, self.records, strict=True)
        for location, positions, (capacities, *_rest) in before_and_after:
            for base, position in positions.items():
                added = capacities[position][3].total - location.capacities[base].used.total
                if added:
                    taken[location.path, base] = added
        return taken

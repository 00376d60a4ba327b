"""The decisions of the search, and usage by location while requirements are placed and taken back.

Equivalent states share a number. Two locations are equivalent if they and everything inside have the same resources,
usage and requirements waiting for parts; names do not count. The same can follow, up to names. So the search tries one
of several equivalent locations, and memoises what it found for a state by its number.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators.group.locations import Locations
from placement.allocators.group.objective import Objective, Weights, objective_of
from placement.allocators.group.requirements import RequirementNode
from placement.allocators.group.scorers import Phase, Scorer, Used
from placement.allocators.group.tree import ANYWHERE, Path

OUTERMOST = -1


class Option(NamedTuple):
    """A location that a pick may take.

    Args:
        chain: the locations of all the pick's requirements, ending in ``location``.
        trail: the path from just below the parent pick's location down to this one.
    """

    location: int
    chain: tuple[int, ...]
    trail: tuple[int, ...]


@dataclass(slots=True)
class Pick:
    """One decision of the search.

    Args:
        index: its position in the order.
        nodes: the requirement it places, preceded by those enclosing requirements that ask for nothing else, whose
            locations follow from it.
        parent: the pick that places the enclosing requirement; OUTERMOST for a container.
        container: the number of the container.
        siblings: the group number of picks that must not share a location; 0 if there is no such rule.
        end: one past the index of the last pick inside it.
        notes: marks on its location for as long as later picks depend on it: its index + 1 while parts of it are to
            come, minus the group number while siblings are.
        ends: the notes that expire once it is placed, as (pick, note).
        options: the parent's location -> what the pick may take; a cache.
    """

    index: int
    nodes: tuple[RequirementNode, ...]
    parent: int
    container: int
    siblings: int = 0
    end: int = 0
    notes: tuple[int, ...] = ()
    ends: list[tuple[int, int]] = field(default_factory=list)
    options: dict[int, list[Option]] = field(default_factory=dict)

    @property
    def node(self) -> RequirementNode:
        """The requirement it places, the innermost one."""
        return self.nodes[-1]

    @property
    def counts(self) -> bool:
        """Whether it affects the score: init containers do not."""
        return self.node.phase is Phase.RUNNING


class Picks:
    """Turns requirements into picks.

    If ``distinct``, parts of one requirement that have the same level must not share a location, except ``ANYWHERE``.
    """

    def __init__(self, locations: Locations, nodes: Sequence[RequirementNode], *, distinct: bool) -> None:
        self._locations = locations
        self._distinct = distinct
        self.all: list[Pick] = []
        self._sibling_groups = 0
        for number, node in enumerate(nodes):
            pick = Pick(len(self.all), (node,), OUTERMOST, number)
            self.all.append(pick)
            self._add_parts(pick)
        for pick in self.all:
            if pick.parent != OUTERMOST and pick.end > pick.index + 1:
                self._note(pick, pick.index + 1, last=pick.end - 1)

    def _add_parts(self, outer: Pick) -> None:
        counts = Counter([part.level for part in outer.node.parts])
        levels_apart = [level for level, count in counts.items() if self._distinct and count > 1 and level != ANYWHERE]
        groups = {level: self._sibling_groups + number for number, level in enumerate(levels_apart, start=1)}
        self._sibling_groups += len(levels_apart)
        placed: dict[int, list[Pick]] = {group: [] for group in groups.values()}
        for part in outer.node.parts:
            group, chain = groups.get(part.level, 0), [part]
            # Enclosing requirements that ask for nothing but a single part are placed with it.
            while not (group or chain[-1].amounts) and len(chain[-1].parts) == 1:
                chain.append(chain[-1].parts[0])
            pick = Pick(len(self.all), tuple(chain), outer.index, outer.container, group)
            self.all.append(pick)
            if group:
                placed[group].append(pick)
            self._add_parts(pick)
        for group, siblings in placed.items():
            for pick in siblings[:-1]:
                self._note(pick, -group, last=siblings[-1].index)
        outer.end = len(self.all)

    def _note(self, pick: Pick, note: int, *, last: int) -> None:
        """Mark a pick's location until the ``last`` pick has been placed."""
        pick.notes = (*pick.notes, note)
        self.all[last].ends.append((pick.index, note))

    def options(self, pick: Pick, around: int) -> list[Option]:
        """Return what a pick may take inside a location, in natural order."""
        if around not in pick.options:
            pick.options[around] = self._options(pick, around)
        return pick.options[around]

    def _options(self, pick: Pick, around: int) -> list[Option]:
        if pick.parent == OUTERMOST:
            return [Option(0, (0,), ())] if 0 in pick.node.viable else []
        chains: list[tuple[int, ...]] = [()]
        for node in pick.nodes:
            longer = [
                (*chain, location)
                for chain in chains
                for location in self._locations.below(chain[-1] if chain else around, node.level)
                if location in node.viable
            ]
            # Any chain to a location will do: its outer requirements ask for nothing, and touch the same locations.
            chains = list({chain[-1]: chain for chain in reversed(longer)}.values())
        chains.sort(key=lambda chain: chain[-1])
        return [Option(chain[-1], chain, self._locations.trail(around, chain[-1])) for chain in chains]


CapacityState = tuple[Used, tuple[int, ...], int, Used, int]
"""(used before the container, the container's requests so far, the container or SETTLED, used now, score)."""

Record = tuple[tuple[CapacityState, ...], bool, tuple[int, ...], int, int]
"""(states of the capacities, is touched, notes, sum of scores here and inside, number of the state)."""

SETTLED = -1


class State:
    """The state of all locations. The picks that will be placed determine which resources can change."""

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
        for node in reversed(locations.all):
            changing = [node.capacities[base] for base in self._positions[node.index]]
            states = [(capacity.used, (), SETTLED, capacity.used, locations.score(capacity)) for capacity in changing]
            self.records[node.index] = self._record(node.index, tuple(states), node.score, touched=False, notes=())

    def _capacities_that_change(self) -> tuple[list[dict[str, int]], list[list[int]]]:
        """Return by location: each requested resource's position, and the kinds of these resources."""
        bases_of_levels: dict[str, set[str]] = {}
        for pick in self._picks:
            bases_of_levels.setdefault(pick.node.level, set()).update([base for base, _amount in pick.node.amounts])
        positions, kinds = [], []
        for location in self._locations.all:
            of_level = bases_of_levels.get(location.level, set()) | bases_of_levels.get(ANYWHERE, set())
            bases = sorted([base for base in location.capacities if base in of_level])
            positions.append({base: position for position, base in enumerate(bases)})
            of_bases = [(location.capacities[base].allocatable, location.capacities[base].scorer) for base in bases]
            self._kind_values += [kind for kind in dict.fromkeys(of_bases) if kind not in self._kind_values]
            kinds.append([self._kind_values.index(kind) for kind in of_bases])
        return positions, kinds

    def _number(self, value: object) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _what_stays(self) -> list[int]:
        """Return by location a number for everything that is neither its state nor inside it."""
        restrictions = list(dict.fromkeys([node.requirement.only for pick in self._picks for node in pick.nodes]))
        numbers = []
        for location, positions, kinds in zip(self._locations.all, self._positions, self._kinds, strict=True):
            inside = sum([self._locations.all[child].score for child in location.children])
            changing = sum([self._locations.score(location.capacities[base]) for base in positions])
            allowed = tuple([only is None or location.path in only for only in restrictions])
            score = location.score - inside - changing
            staying = (location.level, tuple(positions), tuple(kinds), location.keys, score, allowed)
            numbers.append(self._number(("fixed", staying)))
        return numbers

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
        before, requests, container, now, score = old
        if container != pick.container:
            before, requests = now, ()
        requests = tuple(sorted((*requests, amount)))
        allocatable, scorer = self._kind_values[kind]
        verdict = scorer.judge(allocatable, before, requests, pick.node.phase)
        if not verdict.fits:
            return None
        if pick.counts:
            score = self._locations.scaled(verdict.score)
        if scorer.adds_up:
            if pick.counts:
                return verdict.used, (), SETTLED, verdict.used, score
            requests = (sum(requests),)
        return before, requests, pick.container, verdict.used, score

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
        for pick_index, note in pick.ends:
            place = self.where[pick_index]
            record = self.records[place]
            notes_left = list(record[2])
            notes_left.remove(note)
            self._climb(place, log, capacities=record[0], notes=tuple(notes_left), gain=0)

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
        for location, positions, (capacities, *_unchanged) in before_and_after:
            for base, position in positions.items():
                added = capacities[position][3].total - location.capacities[base].used.total
                if added:
                    taken[location.path, base] = added
        return taken

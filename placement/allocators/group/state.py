"""What is in use where, while demands are placed and taken back; states that are alike have one number.

Two locations are alike if they and all inside them have the same resources, the same amounts in use and the same
demands waiting for parts inside; names do not count. What can follow is then the same, with the names exchanged. So
the search tries one of several locations that are alike, and remembers what it found for a state by its number.
"""

from collections.abc import Sequence

from placement.allocators.group.objective import Objective, Weights, objective_of
from placement.allocators.group.scorers import Scorer, Used
from placement.allocators.group.sites import Cell, Sites
from placement.allocators.group.steps import Option, Step
from placement.allocators.group.tree import Path

CellState = tuple[Used, tuple[int, ...], int, Used, int]
"""(used before the container, what the container asks so far, the container or SETTLED, used now, score)."""

Record = tuple[tuple[CellState, ...], bool, tuple[int, ...], int, int]
"""(states of the cells, is touched, marks, sum of scores here and inside, number of the state)."""

SETTLED = -1


class State:
    """The state of all locations.

    Args:
        sites: the locations.
        weights: what changes of the objective are worth.
        steps: the steps that will be placed; they decide which resources can change.
    """

    def __init__(self, sites: Sites, weights: Weights, steps: Sequence[Step]) -> None:
        self._sites = sites
        self._weights = weights
        self._steps = steps
        self._numbers: dict[object, int] = {}
        self._moves: dict[object, CellState | None] = {}
        self._kind_values: list[tuple[int, Scorer]] = []
        self._places, self._kinds = self._cells_that_change()
        self._fixed = self._what_stays()
        self.where = [0] * len(steps)
        """The location of each step that is placed."""
        self.records: list[Record] = [((), False, (), 0, 0)] * len(sites.all)
        self._log: list[list[tuple[int, Record]]] = []
        for site in reversed(range(len(sites.all))):
            self.records[site] = self._first_record(site)

    def _cells_that_change(self) -> tuple[list[dict[str, int]], list[list[int]]]:
        """Return for each location the position of each resource that is asked for, and the kinds of these."""
        asked: dict[str, set[str]] = {}
        for step in self._steps:
            asked.setdefault(step.need.level, set()).update([base for base, _amount in step.need.amounts])
        places, kinds = [], []
        for site in self._sites.all:
            bases = sorted([base for base in site.cells if base in asked.get(site.level, ())])
            places.append({base: position for position, base in enumerate(bases)})
            kinds.append([self._kind(site.cells[base]) for base in bases])
        return places, kinds

    def _kind(self, cell: Cell) -> int:
        kind = (cell.allocatable, cell.scorer)
        if kind not in self._kind_values:
            self._kind_values.append(kind)
        return self._kind_values.index(kind)

    def _number(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    def _what_stays(self) -> list[int]:
        """Return for each location a number for all that is neither its state nor inside it."""
        pinned = {need.demand.pinned for step in self._steps for need in step.needs}
        numbers = []
        for site, places, kinds in zip(self._sites.all, self._places, self._kinds, strict=True):
            inside = sum([self._sites.all[child].score for child in site.children])
            changing = sum([self._sites.score(site.cells[base]) for base in places])
            pin = site.path if site.path in pinned else ()
            staying = (site.level, tuple(places), tuple(kinds), site.keys, site.score - inside - changing, pin)
            numbers.append(self._number(("fixed", staying)))
        return numbers

    def _first_record(self, site: int) -> Record:
        place = self._sites.all[site]
        cells: list[CellState] = []
        for base in self._places[site]:
            cell = place.cells[base]
            cells.append((cell.used, (), SETTLED, cell.used, self._sites.score(cell)))
        return self._record(site, tuple(cells), place.score, touched=False, marks=())

    def _record(
        self, site: int, cells: tuple[CellState, ...], score: int, *, touched: bool, marks: tuple[int, ...]
    ) -> Record:
        inside = tuple(sorted([self.records[child][4] for child in self._sites.all[site].children]))
        number = self._number((self._fixed[site], cells, touched, marks, inside))
        return cells, touched, marks, score, number

    @property
    def number(self) -> int:
        """The number of the state of the whole tree."""
        return self.records[0][4]

    def likeness(self, option: Option) -> tuple[int, ...]:
        """Return what is the same for options, inside one location, that are alike."""
        return tuple([self.records[site][4] for site in option.trail])

    def is_barred(self, step: Step, site: int) -> bool:
        """Tell whether a location has been given to one that must not share it with this step."""
        return step.siblings > 0 and -step.siblings in self.records[site][2]

    def cells_after(self, step: Step, site: int) -> tuple[tuple[CellState, ...], int] | None:
        """Return what a step would make of a location's resources, and the gain in score; None if it does not fit."""
        before = self.records[site][0]
        if not step.need.amounts:
            return before, 0
        cells = list(before)
        places, kinds = self._places[site], self._kinds[site]
        gain = 0
        for base, amount in step.need.amounts:
            position = places[base]
            old = cells[position]
            new = self._move(kinds[position], old, amount, step)
            if new is None:
                return None
            cells[position] = new
            gain += new[4] - old[4]
        return tuple(cells), gain

    def _move(self, kind: int, old: CellState, amount: int, step: Step) -> CellState | None:
        key = (kind, old, amount, step.need.phase, step.container)
        try:
            return self._moves[key]
        except KeyError:
            new = self._moves[key] = self._judged(step, old, amount, kind)
            return new

    def _judged(self, step: Step, old: CellState, amount: int, kind: int) -> CellState | None:
        before, asked, container, now, score = old
        if container != step.container:
            before, asked = now, ()
        asked = tuple(sorted((*asked, amount)))
        allocatable, scorer = self._kind_values[kind]
        verdict = scorer.judge(allocatable, before, asked, step.need.phase)
        if not verdict.fits:
            return None
        if step.counts:
            score = self._sites.scaled(verdict.score)
        if scorer.adds_up:
            if step.counts:
                return verdict.used, (), SETTLED, verdict.used, score
            asked = (sum(asked),)
        return before, asked, step.container, verdict.used, score

    def worth(self, site: int, gain: int) -> int:
        """Return what the objective gains if a step raises the sum of scores in a location."""
        worth = gain * self._weights.score
        touch, tightness = self._weights.touch, self._weights.tightness
        while site > 0:
            _cells, touched, _marks, score, _number = self.records[site]
            if not touched:
                worth -= touch[site]
            if gain:
                worth += gain * (2 * score + gain) * tightness[site]
            site = self._sites.all[site].parent
        return worth

    def place(self, step: Step, site: int, after: tuple[tuple[CellState, ...], int]) -> None:
        """Give a step a location, with what ``cells_after`` said."""
        log: list[tuple[int, Record]] = []
        self._log.append(log)
        cells, gain = after
        self.where[step.index] = site
        marks = self.records[site][2]
        if step.marks:
            marks = tuple(sorted((*marks, *step.marks)))
        self._climb(site, log, cells=cells, marks=marks, gain=gain)
        for other, mark in step.ends:
            place = self.where[other]
            record = self.records[place]
            left = list(record[2])
            left.remove(mark)
            self._climb(place, log, cells=record[0], marks=tuple(left), gain=0)

    def _climb(
        self,
        site: int,
        log: list[tuple[int, Record]],
        *,
        cells: tuple[CellState, ...],
        marks: tuple[int, ...],
        gain: int,
    ) -> None:
        """Write the record of a location anew, and those of all around it; the log keeps the old ones."""
        old = self.records[site]
        log.append((site, old))
        self.records[site] = self._record(site, cells, old[3] + gain, touched=True, marks=marks)
        site = self._sites.all[site].parent
        while site >= 0:
            cells, _touched, marks, score, _number = old = self.records[site]
            log.append((site, old))
            self.records[site] = self._record(site, cells, score + gain, touched=True, marks=marks)
            site = self._sites.all[site].parent

    def take_back(self) -> None:
        """Undo the last ``place``."""
        for site, record in reversed(self._log.pop()):
            self.records[site] = record

    def objective(self) -> Objective:
        """Return how good the state is."""
        touched = [site for site, record in enumerate(self.records) if record[1]]
        return objective_of(self._sites, self._weights, [record[3] for record in self.records], touched)

    def taken(self) -> dict[tuple[Path, str], int]:
        """Return what was added to what is in use, by location and resource."""
        taken = {}
        for site, places, (cells, *_rest) in zip(self._sites.all, self._places, self.records, strict=True):
            for base, place in places.items():
                added = cells[place][3].total - site.cells[base].used.total
                if added:
                    taken[site.path, base] = added
        return taken

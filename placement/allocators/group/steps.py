"""The demands in the order in which the search places them, one step for each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators.group.needs import Need
from placement.allocators.group.scorers import Phase
from placement.allocators.group.sites import Sites

OUTERMOST = -1


class Option(NamedTuple):
    """A location that a step may take.

    Args:
        site: the location.
        chain: the locations of all needs of the step; the last is ``site``.
        trail: the locations from below that of the step around it down to it.
    """

    site: int
    chain: tuple[int, ...]
    trail: tuple[int, ...]


@dataclass(slots=True)
class Step:
    """One choice of the search.

    Args:
        index: its place in the order.
        needs: the need it serves; before it those around it that ask for nothing else and so follow from its location.
        parent: the step whose location is around, OUTERMOST for that of a container.
        container: the number of the container.
        siblings: if no two of some steps may share a location, the number they have in common; 0 for others.
        end: one more than the index of the last step inside.
        marks: what is noted at its location while it matters for steps to come: that parts of it follow (its index
            plus 1), that siblings must not share it (minus their number).
        ends: the notes that do not matter any more after it, as (step, mark).
        options: by the location of the parent, what the step may take.
    """

    index: int
    needs: tuple[Need, ...]
    parent: int
    container: int
    siblings: int = 0
    end: int = 0
    marks: tuple[int, ...] = ()
    ends: list[tuple[int, int]] = field(default_factory=list)
    options: dict[int, list[Option]] = field(default_factory=dict)

    @property
    def need(self) -> Need:
        """The need that is served, the innermost one."""
        return self.needs[-1]

    @property
    def counts(self) -> bool:
        """Whether the score is taken after it: containers of initialisation do not change it."""
        return self.need.phase is Phase.RUNNING


class Steps:
    """Makes steps of needs.

    Args:
        sites: the locations.
        needs: the needs of the containers, in the order of the search.
        distinct: whether parts of one demand that have one level must not share a location.
    """

    def __init__(self, sites: Sites, needs: Sequence[Need], *, distinct: bool) -> None:
        self._sites = sites
        self._distinct = distinct
        self.all: list[Step] = []
        self._siblings = 0
        self._add_containers(needs)

    def _add_containers(self, needs: Sequence[Need]) -> None:
        for number, need in enumerate(needs):
            step = Step(len(self.all), (need,), OUTERMOST, number)
            self.all.append(step)
            self._add_parts(step)
        for step in self.all:
            if step.parent != OUTERMOST and step.end > step.index + 1:
                self._mark(step, step.index + 1, last=step.end - 1)

    def _add_parts(self, outer: Step) -> None:
        numbers = self._sibling_numbers(outer.need.parts)
        placed: dict[int, list[Step]] = {}
        for part in outer.need.parts:
            number = numbers[part.level]
            step = Step(len(self.all), self._chain(part, may_start=not number), outer.index, outer.container, number)
            self.all.append(step)
            if number:
                placed.setdefault(number, []).append(step)
            self._add_parts(step)
        for number, siblings in placed.items():
            for step in siblings[:-1]:
                self._mark(step, -number, last=siblings[-1].index)
        outer.end = len(self.all)

    def _sibling_numbers(self, parts: Sequence[Need]) -> dict[str, int]:
        """Return a number for each level where several parts must not share a location, 0 for other levels."""
        numbers = {}
        for level, count in Counter([part.level for part in parts]).items():
            apart = self._distinct and count > 1
            self._siblings += apart
            numbers[level] = self._siblings if apart else 0
        return numbers

    def _mark(self, step: Step, mark: int, *, last: int) -> None:
        """Have a step marked until another is placed."""
        step.marks = (*step.marks, mark)
        self.all[last].ends.append((step.index, mark))

    def _chain(self, need: Need, *, may_start: bool) -> tuple[Need, ...]:
        """Return a need, or, if it asks only for one part inside, it and that part, and so on."""
        chain = [need]
        if may_start:
            while not chain[-1].amounts and len(chain[-1].parts) == 1:
                chain.append(chain[-1].parts[0])
        return tuple(chain)

    def options(self, step: Step, around: int) -> list[Option]:
        """Return what a step may take inside a location, in natural order."""
        found = step.options.get(around)
        if found is None:
            found = step.options[around] = self._find(step, around)
        return found

    def _find(self, step: Step, around: int) -> list[Option]:
        if step.parent == OUTERMOST:
            return [Option(0, (0,), ())] if 0 in step.need.viable else []
        chains: list[tuple[int, ...]] = [()]
        for need in step.needs:
            longer = [
                (*chain, site)
                for chain in chains
                for site in self._sites.below(chain[-1] if chain else around, need.level)
                if site in need.viable
            ]
            # One way to a location is as good as another: what is around it is the same.
            chains = list({chain[-1]: chain for chain in reversed(longer)}.values())
        chains.sort(key=lambda chain: chain[-1])
        return [Option(chain[-1], chain, self._sites.trail(around, chain[-1])) for chain in chains]

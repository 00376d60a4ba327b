"""The requirements in the order in which the search places them, one pick for each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators.group.locations import Locations
from placement.allocators.group.requirements import RequirementNode
from placement.allocators.group.scorers import Phase

OUTERMOST = -1


class Option(NamedTuple):
    """A location that a pick may take.

    Args:
        location: the location.
        chain: the locations of all requirements of the pick; the last is ``location``.
        trail: the locations from below that of the pick around it down to it.
    """

    location: int
    chain: tuple[int, ...]
    trail: tuple[int, ...]


@dataclass(slots=True)
class Pick:
    """One choice of the search.

    Args:
        index: its place in the order.
        nodes: the requirement it serves; before it those around it that ask for nothing else, and so follow from its
            location.
        parent: the pick whose location is around, OUTERMOST for that of a container.
        container: the number of the container.
        siblings: if no two of some picks may share a location, the number they have in common; 0 for others.
        end: one more than the index of the last pick inside.
        notes: what is noted at its location while it matters for picks to come: that parts of it follow (its index
            plus 1), that siblings must not share it (minus their number).
        ends: the notes that do not matter any more after it, as (pick, note).
        options: by the location of the parent, what the pick may take.
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
        """The requirement that is served, the innermost one."""
        return self.nodes[-1]

    @property
    def counts(self) -> bool:
        """Whether the score is taken after it: containers of initialisation do not change it."""
        return self.node.phase is Phase.RUNNING


class Picks:
    """Makes picks of requirements.

    Args:
        locations: the locations.
        nodes: the nodes of the containers, in the order of the search.
        distinct: whether parts of one requirement that have one level must not share a location.
    """

    def __init__(self, locations: Locations, nodes: Sequence[RequirementNode], *, distinct: bool) -> None:
        self._locations = locations
        self._distinct = distinct
        self.all: list[Pick] = []
        self._siblings = 0
        self._add_containers(nodes)

    def _add_containers(self, nodes: Sequence[RequirementNode]) -> None:
        for number, node in enumerate(nodes):
            pick = Pick(len(self.all), (node,), OUTERMOST, number)
            self.all.append(pick)
            self._add_parts(pick)
        for pick in self.all:
            if pick.parent != OUTERMOST and pick.end > pick.index + 1:
                self._note(pick, pick.index + 1, last=pick.end - 1)

    def _add_parts(self, outer: Pick) -> None:
        numbers = self._sibling_numbers(outer.node.parts)
        placed: dict[int, list[Pick]] = {}
        for part in outer.node.parts:
            number = numbers[part.level]
            pick = Pick(len(self.all), self._chain(part, may_start=not number), outer.index, outer.container, number)
            self.all.append(pick)
            if number:
                placed.setdefault(number, []).append(pick)
            self._add_parts(pick)
        for number, siblings in placed.items():
            for pick in siblings[:-1]:
                self._note(pick, -number, last=siblings[-1].index)
        outer.end = len(self.all)

    def _sibling_numbers(self, parts: Sequence[RequirementNode]) -> dict[str, int]:
        """Return a number for each level where several parts must not share a location, 0 for other levels."""
        numbers = {}
        for level, count in Counter([part.level for part in parts]).items():
            apart = self._distinct and count > 1
            self._siblings += apart
            numbers[level] = self._siblings if apart else 0
        return numbers

    def _note(self, pick: Pick, note: int, *, last: int) -> None:
        """Have a pick marked until another is placed."""
        pick.notes = (*pick.notes, note)
        self.all[last].ends.append((pick.index, note))

    def _chain(self, node: RequirementNode, *, may_start: bool) -> tuple[RequirementNode, ...]:
        """Return a node, or, if it asks only for one part inside, it and that part, and so on."""
        chain = [node]
        if may_start:
            while not chain[-1].amounts and len(chain[-1].parts) == 1:
                chain.append(chain[-1].parts[0])
        return tuple(chain)

    def options(self, pick: Pick, around: int) -> list[Option]:
        """Return what a pick may take inside a location, in natural order."""
        found = pick.options.get(around)
        if found is None:
            found = pick.options[around] = self._find(pick, around)
        return found

    def _find(self, pick: Pick, around: int) -> list[Option]:
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
            # One way to a location is as good as another: what is around it is the same.
            chains = list({chain[-1]: chain for chain in reversed(longer)}.values())
        chains.sort(key=lambda chain: chain[-1])
        return [Option(chain[-1], chain, self._locations.trail(around, chain[-1])) for chain in chains]

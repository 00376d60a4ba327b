"""The decisions of the search: requirements in the order of their placement, one pick for each."""

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

    Args:
        locations: the locations.
        nodes: the containers' nodes in search order.
        distinct: whether parts of one requirement that have the same level must not share a location.
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
        """Return level -> a new group number if several parts of it must not share a location, else 0."""
        numbers = {}
        for level, count in Counter([part.level for part in parts]).items():
            apart = self._distinct and count > 1
            self._siblings += apart
            numbers[level] = self._siblings if apart else 0
        return numbers

    def _note(self, pick: Pick, note: int, *, last: int) -> None:
        """Mark a pick's location until the ``last`` pick has been placed."""
        pick.notes = (*pick.notes, note)
        self.all[last].ends.append((pick.index, note))

    def _chain(self, node: RequirementNode, *, may_start: bool) -> tuple[RequirementNode, ...]:
        """Return a node, extended inwards as long as the last one asks for nothing but a single part."""
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
            # Any chain to a location will do: its outer requirements ask for nothing, and touch the same locations.
            chains = list({chain[-1]: chain for chain in reversed(longer)}.values())
        chains.sort(key=lambda chain: chain[-1])
        return [Option(chain[-1], chain, self._locations.trail(around, chain[-1])) for chain in chains]

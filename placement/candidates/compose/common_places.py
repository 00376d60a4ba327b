"""Tells whether groups that must lie in one place (``within``) find one: with it fixed, all that matters is room.

A host has few places, so each is tried. What was found out about the room in one of them holds for any other place with
the same room (``room_alone``).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from placement.candidates.compose.device_parts import Part
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree

WantedOfParts = Sequence[tuple[Sequence[int], int]]
"""For each part, the providers that can serve it, and how many different ones it wants."""

HasRoom = Callable[[WantedOfParts], bool | None]
"""Tells whether each part gets its providers, wherever they are; None if that remains unknown."""


class _TiedParts(NamedTuple):
    """A level, and the parts, by number, that must lie in one place of it."""

    level: int
    parts: frozenset[int]


class CommonPlaces:
    """The rules of a request about groups in one place.

    Args:
        request: the request.
        parts: its parts.
        levels: the levels.
    """

    def __init__(self, request: PlannerRequest, parts: Sequence[Part], levels: Levels) -> None:
        self._rules = [
            _TiedParts(
                levels.names.index(levels.named(rule.level)),
                frozenset([number for number, part in enumerate(parts) if part.slot.suffix in rule.groups]),
            )
            for rule in request.within
            if rule.required
        ]

    @property
    def are_asked_for(self) -> bool:
        """Whether there is any rule."""
        return bool(self._rules)

    def serve(self, wanted: WantedOfParts, details: PlannerTree, has_room: HasRoom) -> bool | None:
        """Tell whether all parts get their providers, with a place for each rule; None if that remains unknown.

        Args:
            wanted: the providers of each part, wherever they are, and how many it wants.
            details: the tree.
            has_room: tells whether the providers that lie in the places fixed so far are enough.
        """
        return self._serve(wanted, details, has_room, given=0) if self._rules else has_room(wanted)

    def _serve(self, wanted: WantedOfParts, details: PlannerTree, has_room: HasRoom, *, given: int) -> bool | None:
        verdict: bool | None = False
        for inside in _inside(wanted, self._rules[given], details):
            found = has_room(inside)
            if found is not False and given + 1 < len(self._rules):
                found = self._serve(inside, details, has_room, given=given + 1)
            if found:
                return True
            if found is None:
                verdict = None
        return verdict


def _inside(wanted: WantedOfParts, rule: _TiedParts, details: PlannerTree) -> Iterator[WantedOfParts]:
    """Fix each place with enough providers for every part of a rule in turn; yield what all parts still want."""
    positions, level = details.positions, rule.level
    of_parts = [Counter([positions[one][level] for one in wanted[part][0]]) for part in rule.parts]
    counts = [wanted[part][1] for part in rule.parts]
    for place in of_parts[0]:
        if place is not None and all([of[place] >= count for of, count in zip(of_parts, counts, strict=True)]):
            yield [
                ([one for one in row if positions[one][level] == place], count) if part in rule.parts else (row, count)
                for part, (row, count) in enumerate(wanted)
            ]

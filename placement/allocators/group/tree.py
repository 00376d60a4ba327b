"""What the Group Allocator works on: a tree of locations that offer resources, and trees of requirements for them.

Plain values without any syntax of names; ``names`` makes them of names like ``gpu/dev0/cards``, others may make
them of a provider tree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placement.allocators.group.scorers import ANY_AMOUNT, Phase, Units

Path = tuple[tuple[str, str], ...]
"""Where a location is: the (level, name) pairs from below the root down to it; the root is ()."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """One allocatable resource of a location: how much there is and how much of it is in use, in the same unit.

    ``units`` says which amounts of it can be had.
    """

    allocatable: int
    used: int = 0
    units: Units = ANY_AMOUNT


@dataclass(frozen=True, slots=True)
class Location:
    """A place with resources of its own and smaller places inside.

    Args:
        name: tells it from the other locations of its level beside it; breaks ties, in natural order.
        level: what kind of place it is (``numa``, ``gpu``); of the root it is not looked at.
        capacities: its own resources, those of the places inside not included.
        children: the places inside.
    """

    name: str = ""
    level: str = ""
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    children: tuple["Location", ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A request for one location of a level, with requirements for locations inside it.

    Args:
        label: tells it from the requirements beside it; never compared with the name of a location.
        level: the level of the location; of a requirement on the root itself it is not looked at.
        amounts: what the location itself must offer.
        parts: the requirements that are to be served inside the location, at any depth.
        phase: when it runs; that of the outermost requirement holds for all its parts.
        pinned: if given, the only location it may have.
    """

    label: str = ""
    level: str = ""
    amounts: Mapping[str, int] = field(default_factory=dict)
    parts: tuple["Requirement", ...] = ()
    phase: Phase = Phase.RUNNING
    pinned: Path | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A requirement and the location it got; its parts in the order of the requirement's."""

    requirement: Requirement
    path: Path
    parts: tuple["Placed", ...] = ()

    def walk(self) -> Iterator["Placed"]:
        """Yield it and all parts, outermost first.

        >>> [placed.path for placed in Placed(Requirement(), (), (Placed(Requirement(), (("gpu", "dev0"),)),)).walk()]
        [(), (('gpu', 'dev0'),)]
        """
        yield self
        for part in self.parts:
            yield from part.walk()

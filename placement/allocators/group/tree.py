"""The Group Allocator's inputs: a tree of locations that offer resources, and trees of requirements.

Plain values, independent of any naming syntax; ``names`` builds them from names like ``gpu/dev0/cards``, and callers
can build them from a provider tree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placement.allocators.group.scorers import ANY_AMOUNT, Phase, Units

Path = tuple[tuple[str, str], ...]
"""A location's address: the (level, name) pairs from just below the root down to it; () for the root."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """One allocatable resource of a location: total and usage, in the same unit.

    ``units`` restricts the amounts in which it can be allocated.
    """

    allocatable: int
    used: int = 0
    units: Units = ANY_AMOUNT


@dataclass(frozen=True, slots=True)
class Location:
    """A place with resources of its own and smaller places inside.

    Args:
        name: unique among its siblings of the same level; breaks ties, in natural order.
        level: the kind of place (``numa``, ``gpu``); ignored for the root.
        capacities: its own resources, excluding those of the places inside.
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
        label: tells it from its siblings; never compared with the name of a location.
        level: the level of the location; ignored for a requirement on the root itself.
        amounts: what the location itself must offer.
        parts: the requirements to serve inside the location, at any depth.
        phase: when it runs; the outermost requirement's applies to all its parts.
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
    """A requirement and the location it got; its parts are in the requirement's order."""

    requirement: Requirement
    path: Path
    parts: tuple["Placed", ...] = ()

    def walk(self) -> Iterator["Placed"]:
        """Yield this requirement and all its parts, outermost first.

        >>> [placed.path for placed in Placed(Requirement(), (), (Placed(Requirement(), (("gpu", "dev0"),)),)).walk()]
        [(), (('gpu', 'dev0'),)]
        """
        yield self
        for part in self.parts:
            yield from part.walk()

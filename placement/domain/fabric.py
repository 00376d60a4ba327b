"""Where a gang's members may lie on the fabric of a cloud: its hosts, and the racks, blocks or zones they are in."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

THE_HOST = "host"
"""The level of single hosts, whose places have no names."""

PlaceNames = Mapping[str, Collection[str]]
"""Place name -> the uuids of its aggregates."""


@dataclass(frozen=True, slots=True)
class FabricLevel:
    """A level of the fabric, such as racks."""

    name: str
    places: PlaceNames = field(default_factory=dict)

    @property
    def is_host(self) -> bool:
        """Whether each host is a place of this level."""
        return self.name == THE_HOST


@dataclass(frozen=True, slots=True)
class Together:
    """A rule to keep members in as few places as possible.

    Args:
        level: the level of those places.
        required: whether anything but a single place is refused.
        each: the size of groups, if members come in groups: each group in one place, no two groups in the same.
    """

    level: FabricLevel
    required: bool = True
    each: int | None = None


@dataclass(frozen=True, slots=True)
class GangRules:
    """A gang's rules for the fabric.

    No two members may be in one place of the level ``apart``.
    """

    together: Together | None = None
    apart: FabricLevel | None = None

    @property
    def are_none(self) -> bool:
        """Whether members may be anywhere."""
        return self.together is None and self.apart is None


ANYWHERE = GangRules()


def names_of_hosts(names: PlaceNames, members: Mapping[str, Collection[int]]) -> dict[int, str]:
    """Return the name of each host's place, the first one if there are several.

    ``members`` maps aggregates to the roots of the trees that have a provider in them.

    >>> names_of_hosts({"b1": ["x"], "b2": ["y", "z"]}, {"x": [1], "y": [1, 2], "z": [3]})
    {1: 'b1', 2: 'b2', 3: 'b2'}
    """
    found: dict[int, str] = {}
    for name, uuids in names.items():
        for uuid in uuids:
            for root in members.get(uuid, ()):
                found.setdefault(root, name)
    return found

"""How members of a gang are to lie on the fabric of a cloud: its hosts, and the racks, blocks or zones they are in."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

THE_HOST = "host"
"""The level of single hosts, which has no names."""

PlaceNames = Mapping[str, Collection[str]]
"""The name of a place -> the uuids of its aggregates."""


@dataclass(frozen=True, slots=True)
class FabricLevel:
    """A level of the fabric, such as racks.

    Args:
        name: what one place of it is called, such as rack.
        places: its places; without meaning for hosts.
    """

    name: str
    places: PlaceNames = field(default_factory=dict)

    @property
    def is_host(self) -> bool:
        """Whether each host is a place of it."""
        return self.name == THE_HOST


@dataclass(frozen=True, slots=True)
class Together:
    """Members that are to be in as few places as possible.

    Args:
        level: of which level.
        required: whether no more than one place will do.
        each: if members come in groups of so many: each group in one place, and no two groups in the same.
    """

    level: FabricLevel
    required: bool = True
    each: int | None = None


@dataclass(frozen=True, slots=True)
class GangRules:
    """What a gang wants of the fabric.

    Args:
        together: where members are to be near each other.
        apart: of which level no two members may be in one place.
    """

    together: Together | None = None
    apart: FabricLevel | None = None

    @property
    def are_none(self) -> bool:
        """Whether members may be anywhere."""
        return self.together is None and self.apart is None


ANYWHERE = GangRules()


def names_of_hosts(names: PlaceNames, members: Mapping[str, Collection[int]]) -> dict[int, str]:
    """Return the name of the place that each host is in: of several the first.

    Args:
        names: the places of one level, in order.
        members: the roots of the trees that have a provider in each aggregate.

    >>> names_of_hosts({"b1": ["x"], "b2": ["y", "z"]}, {"x": [1], "y": [1, 2], "z": [3]})
    {1: 'b1', 2: 'b2', 3: 'b2'}
    """
    found: dict[int, str] = {}
    for name, uuids in names.items():
        for uuid in uuids:
            for root in members.get(uuid, ()):
                found.setdefault(root, name)
    return found

"""The tree that shares are computed over: weighted branches, and leaves that use and request resources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from placement.allocators import natural_key
from placement.allocators.entries import InvalidEntry, Number, check_number, exact

Amounts = Mapping[str, int]
"""Resource class -> amount, in whole units."""

SEPARATOR = "/"

LEAST_WEIGHT, GREATEST_WEIGHT = Fraction(1, 10**6), 10**6


@dataclass(frozen=True, slots=True)
class Leaf:
    """A user of resources, such as a project or a job.

    Raises:
        InvalidEntry: the name cannot be part of a path, or the weight is not between a millionth and a million.
    """

    name: str
    weight: Number = 1

    def __post_init__(self) -> None:
        check_part(self.name, self.weight)


@dataclass(frozen=True, slots=True)
class Branch:
    """A node that divides resources among its parts by weight. The root's weight has no meaning.

    Args:
        name: unique among its siblings.
        weight: relative to its siblings.
        guarantee: class -> the amount that is never reclaimed from it.
        deserved: class -> the amount it is entitled to; anything beyond is borrowed. Unset classes go by weight.
        limit: class -> a hard upper bound.

    Raises:
        InvalidEntry: as for a leaf, and for two parts of the same name.
    """

    name: str
    parts: tuple["Branch | Leaf", ...] = field(default=())
    weight: Number = 1
    guarantee: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_part(self.name, self.weight)
        names: set[str] = set()
        for part in self.parts:
            if part.name in names:
                raise InvalidEntry((self.name, part.name), "one part of each name", part.name)
            names.add(part.name)


def check_part(name: str, weight: Number) -> None:
    """Refuse a name that is empty or contains a slash, and a weight that is not between a millionth and a million."""
    if not name or SEPARATOR in name:
        raise InvalidEntry(("name",), "a name without a slash", name)
    check_number(weight, name, "weight")
    if not LEAST_WEIGHT <= exact(weight) <= GREATEST_WEIGHT:
        raise InvalidEntry((name, "weight"), "a number from 0.000001 to 1000000", weight)


def in_order(parts: Iterable[Branch | Leaf]) -> list[Branch | Leaf]:
    """Sort parts naturally by name; ties keep their order."""
    return sorted(parts, key=lambda part: natural_key(part.name))


def joined(above: str, name: str) -> str:
    """Append a name to a path."""
    return f"{above}{SEPARATOR}{name}" if above else name


def way(path: str) -> list[str]:
    """Return the paths from just below the root down to this node.

    >>> way("root/eng/dev")
    ['root/eng', 'root/eng/dev']
    """
    names = path.split(SEPARATOR)
    return [SEPARATOR.join(names[:end]) for end in range(2, len(names) + 1)]

"""The tree over which shares are fair: branches with weights, and leaves that use and want resources."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from placement.allocators.entries import InvalidEntry, Number, check_number, exact
from placement.allocators.natural_order import natural_key

Amounts = Mapping[str, int]
"""Resource class -> how much, in whole units."""

SEPARATOR = "/"

LEAST_WEIGHT, GREATEST_WEIGHT = Fraction(1, 10**6), 10**6


@dataclass(frozen=True, slots=True)
class Leaf:
    """What uses resources: a project, a job.

    Raises:
        InvalidEntry: for a name that cannot be in a path, or a weight that is not between a millionth and a million.
    """

    name: str
    weight: Number = 1

    def __post_init__(self) -> None:
        check_part(self.name, self.weight)


@dataclass(frozen=True, slots=True)
class Branch:
    """What shares resources among its parts, by their weights. The weight of the outermost has no meaning.

    Raises:
        InvalidEntry: as for a leaf, and for two parts of one name.

    >>> Branch("root", (Branch("eng", (Leaf("ann"),), weight=2), Leaf("bob"))).parts[0].weight
    2
    """

    name: str
    parts: tuple["Branch | Leaf", ...] = field(default=())
    weight: Number = 1

    def __post_init__(self) -> None:
        check_part(self.name, self.weight)
        seen: set[str] = set()
        for part in self.parts:
            if part.name in seen:
                raise InvalidEntry((self.name, part.name), "one part of each name", part.name)
            seen.add(part.name)


def check_part(name: str, weight: Number) -> None:
    """Refuse a name that is empty or holds a slash, and a weight that is not between a millionth and a million."""
    if not name or SEPARATOR in name:
        raise InvalidEntry(("name",), "a name without a slash", name)
    check_number(weight, name, "weight")
    if not LEAST_WEIGHT <= exact(weight) <= GREATEST_WEIGHT:
        raise InvalidEntry((name, "weight"), "a number from 0.000001 to 1000000", weight)


def ratio_of(weight: Number) -> tuple[int, int]:
    """Return a weight as numerator and denominator, exactly as it was written.

    >>> ratio_of(0.1)
    (1, 10)
    """
    return Fraction(exact(weight)).as_integer_ratio()


def in_order(parts: Iterable[Branch | Leaf]) -> list[Branch | Leaf]:
    """Return the parts in the natural order of their names, in which the first of equals is the first."""
    return sorted(parts, key=lambda part: natural_key(part.name))


def leaf_paths(part: Branch | Leaf, above: str = "") -> Iterator[str]:
    """Yield the paths of all leaves, in natural order.

    >>> list(leaf_paths(Branch("root", (Leaf("bob"), Branch("eng", (Leaf("ann"),))))))
    ['root/bob', 'root/eng/ann']
    """
    path = joined(above, part.name)
    if isinstance(part, Leaf):
        yield path
    else:
        for inner in in_order(part.parts):
            yield from leaf_paths(inner, path)


def joined(above: str, name: str) -> str:
    """Return the path of a part."""
    return f"{above}{SEPARATOR}{name}" if above else name

"""The tree over which shares are fair: branches with weights, and leaves that use and want resources."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

    Args:
        name: what it is called beside its siblings.
        parts: what is in it.
        weight: how much it counts beside its siblings.
        guarantee: class -> how much is never taken from it.
        deserved: class -> how much it may have; more is borrowed. Where nothing is said, the weight decides.
        limit: class -> how much it can have at most.

    Raises:
        InvalidEntry: as for a leaf, and for two parts of one name.

    >>> Branch("root", (Branch("eng", (Leaf("ann"),), weight=2), Leaf("bob"))).parts[0].weight
    2
    """

    name: str
    parts: tuple["Branch | Leaf", ...] = field(default=())
    weight: Number = 1
    guarantee: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)

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
    return (path for path, one in _downwards(part, above, in_order) if isinstance(one, Leaf))


def branches_of(branch: Branch, above: str = "") -> Iterator[tuple[str, Branch]]:
    """Yield the path of each branch, and the branch, each before those in it."""
    return ((path, one) for path, one in _downwards(branch, above, tuple) if isinstance(one, Branch))


def _downwards(
    part: Branch | Leaf, above: str, arranged: Callable[[Iterable[Branch | Leaf]], Sequence[Branch | Leaf]]
) -> Iterator[tuple[str, Branch | Leaf]]:
    """Yield a part and all in it with their paths, each before what is in it. Trees may be as deep as they like."""
    stack = [(above, part)]
    while stack:
        above, one = stack.pop()
        path = joined(above, one.name)
        yield path, one
        if isinstance(one, Branch):
            stack += [(path, inner) for inner in reversed(arranged(one.parts))]


def joined(above: str, name: str) -> str:
    """Return the path of a part."""
    return f"{above}{SEPARATOR}{name}" if above else name


def way(path: str) -> list[str]:
    """Return the paths of the nodes from below the root down to one.

    >>> way("root/eng/dev")
    ['root/eng', 'root/eng/dev']
    """
    names = path.split(SEPARATOR)
    return [SEPARATOR.join(names[:end]) for end in range(2, len(names) + 1)]

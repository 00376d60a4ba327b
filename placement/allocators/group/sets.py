"""Sets of requirements, encoded as integers: which of them are placed inside a location.

Childless siblings that differ only in their labels are of one kind, of which a set has a count. A requirement with
parts is a kind of its own, and belongs to a set only together with all its parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from placement.allocators.group.requirements import Form, RequirementNode


@dataclass(slots=True, eq=False)
class PartKind:
    """Interchangeable requirements, of which a set has a count.

    Args:
        nodes: the requirements.
        container: the number of their container.
        around: the number of the enclosing requirement, the same for sibling kinds.
        inside: the kinds of the parts.
        one: the value of one of them in a set's number, its parts excluded.
        parts: the set of all parts.
    """

    nodes: list[RequirementNode]
    container: int
    around: int
    inside: list["PartKind"] = field(default_factory=list)
    one: int = 0
    parts: int = 0

    def count_in(self, numbers: int) -> int:
        """Return how many of them a set has."""
        return numbers // self.one % (len(self.nodes) + 1)

    @property
    def all(self) -> int:
        """The set of all of them, with their parts."""
        return self.one * len(self.nodes) + self.parts

    @property
    def sets(self) -> int:
        """The number of sets of them and their parts."""
        return 1 + prod([inner.sets for inner in self.inside]) if self.inside else 1 + len(self.nodes)


class Sets:
    """The sets of the requirements inside some outermost ones.

    A set is a number in mixed radix whose digits count the requirements of each kind, so the union of disjoint sets is
    their sum.

    Args:
        containers: the outermost requirements in search order.

    Attributes:
        kinds: all kinds in search order.
        everything: the set of all requirements.
        count: the number of sets.
        leaves: the number of requirements without parts.
    """

    def __init__(self, containers: Sequence[RequirementNode]) -> None:
        self.kinds: list[PartKind] = []
        self._outermost: list[PartKind] = []
        for number, container in enumerate(containers):
            self._outermost += self._kinds_of_parts(container, number)
        self.everything = self._number_kinds()
        self.count = prod([kind.sets for kind in self._outermost])
        self.leaves = self.leaves_in(self.everything)
        self._beside: dict[int, list[int]] = {}

    def _kinds_of_parts(self, node: RequirementNode, container: int) -> list[PartKind]:
        kinds: list[PartKind] = []
        alike: dict[Form, PartKind] = {}
        around = len(self.kinds)
        for part in node.parts:
            if not part.parts and part.form in alike:
                alike[part.form].nodes.append(part)
                continue
            kind = alike[part.form] = PartKind([part], container, around)
            kinds.append(kind)
            self.kinds.append(kind)
            kind.inside = self._kinds_of_parts(part, container)
        return kinds

    def _number_kinds(self) -> int:
        one = 1
        for kind in self.kinds:
            kind.one = one
            one *= len(kind.nodes) + 1
        for kind in reversed(self.kinds):
            kind.parts = sum([inner.all for inner in kind.inside])
        return one - 1

    def leaves_in(self, numbers: int) -> int:
        """Return how many requirements without parts a set has."""
        return sum([kind.count_in(numbers) for kind in self.kinds if not kind.inside])

    def beside(self, numbers: int) -> list[int]:
        """Return all sets disjoint from this one, including the empty set."""
        found = self._beside.get(numbers)
        if found is None:
            found = self._beside[numbers] = _beside(self._outermost, numbers)
        return found


def _beside(kinds: Sequence[PartKind], numbers: int) -> list[int]:
    """Return the sets of some kinds that are disjoint from a set; the last one is the largest."""
    sums = [0]
    for kind in kinds:
        more = _beside_of_kind(kind, numbers)
        sums = [some + others for some in sums for others in more]
    return sums


def _beside_of_kind(kind: PartKind, numbers: int) -> list[int]:
    left = len(kind.nodes) - kind.count_in(numbers)
    if not kind.inside or not left:
        return [kind.one * count for count in range(left + 1)]
    parts = _beside(kind.inside, numbers)
    return [*parts, kind.all] if parts[-1] == kind.parts else parts

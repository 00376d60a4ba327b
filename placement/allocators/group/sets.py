"""Sets of requirements as numbers: which of them are placed inside of some location.

Requirements beside each other that are alike and have no parts are of one kind: a set tells how many of them it has. A
requirement with parts is a kind of its own, and in a set only with all of its parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from placement.allocators.group.requirements import Form, RequirementNode


@dataclass(slots=True, eq=False)
class PartKind:
    """Requirements that a set has some of.

    Args:
        nodes: the requirements, all alike.
        container: the number of their container.
        around: what kinds beside each other have in common: the number of the requirement around them.
        inside: the kinds of the parts.
        one: what a set with one more of them has more, its parts left aside.
        parts: the set of all parts.
    """

    nodes: list[RequirementNode]
    container: int
    around: int
    inside: list["PartKind"] = field(default_factory=list)
    one: int = 0
    parts: int = 0

    def count_in(self, numbers: int) -> int:
        """Return how many of them are in a set."""
        return numbers // self.one % (len(self.nodes) + 1)

    @property
    def all(self) -> int:
        """The set of all of them, with their parts."""
        return self.one * len(self.nodes) + self.parts

    @property
    def sets(self) -> int:
        """How many sets there are of them and their parts."""
        return 1 + prod([inner.sets for inner in self.inside]) if self.inside else 1 + len(self.nodes)


class Sets:
    """The sets of the requirements inside some outermost ones.

    A set is a number: what it has of each kind is a digit of it. So two sets that have nothing in common are added.

    Args:
        containers: the outermost requirements, in the order of the search.

    Attributes:
        kinds: all kinds, in the order of the search.
        everything: the set of all requirements.
        count: how many sets there are.
        leaves: how many requirements have no parts.
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
        """Return how many requirements without parts are in a set."""
        return sum([kind.count_in(numbers) for kind in self.kinds if not kind.inside])

    def beside(self, numbers: int) -> list[int]:
        """Return the sets that have nothing in common with a set, the empty one among them."""
        found = self._beside.get(numbers)
        if found is None:
            found = self._beside[numbers] = _beside(self._outermost, numbers)
        return found


def _beside(kinds: Sequence[PartKind], numbers: int) -> list[int]:
    """Return the sets of some kinds that have nothing in common with a set; the last is the biggest one."""
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

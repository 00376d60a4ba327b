"""Requirements as the search sees them: where each could go, and the order in which they are placed.

The order is made of what is asked and of where it fits, never of labels: what fits in the fewest locations comes first,
then what asks for the most. Requirements that are alike in everything but their labels follow each other in any order.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from placement.allocators.group.locations import Locations
from placement.allocators.group.scorers import Phase
from placement.allocators.group.tree import Requirement

Form = tuple[object, ...]
"""All of a requirement but the labels."""


@dataclass(slots=True)
class RequirementNode:
    """One requirement, with what the search has to know of it.

    Args:
        requirement: the requirement.
        level: its level; "" of an outermost requirement.
        phase: when it runs.
        amounts: what the location itself must offer.
        parts_as_given: those inside, in the order of the requirement's parts.
        parts: the same in the order of the search.
        form: all but the labels.
        viable: the locations where it would fit if it were alone.
        total: the amounts that add up, by (level, resource), its parts included.
        size: how many requirements it is made of, and the sum of all amounts.
    """

    requirement: Requirement
    level: str
    phase: Phase
    amounts: tuple[tuple[str, int], ...]
    parts_as_given: list["RequirementNode"]
    form: Form
    parts: list["RequirementNode"] = field(default_factory=list)
    viable: frozenset[int] = frozenset()
    total: Counter[tuple[str, str]] = field(default_factory=Counter)
    size: tuple[int, int] = (0, 0)

    @property
    def rank(self) -> tuple[object, ...]:
        """What requirements beside each other are sorted by."""
        return len(self.viable), -self.size[0], -self.size[1], self.form

    @property
    def rank_of_container(self) -> tuple[object, ...]:
        """What those of containers are sorted by: running ones come first."""
        return self.phase is not Phase.RUNNING, self._scarcest(), *self.rank

    def _scarcest(self) -> int:
        """Return in how few locations the most demanding part would fit."""
        return min([len(self.viable), *[part._scarcest() for part in self.parts_as_given]])


class Requirements:
    """Makes nodes of requirements, for one tree of locations."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self._viable: dict[Form, frozenset[int]] = {}
        self._free = [locations.free(index) for index in range(len(locations.all))]

    def of(self, containers: Sequence[Requirement]) -> list[RequirementNode]:
        """Return the requirements of containers, in the order given.

        Raises:
            ValueError: an amount is negative.
        """
        return [self._node(requirement, phase=requirement.phase, level="") for requirement in containers]

    def _node(self, requirement: Requirement, *, phase: Phase, level: str) -> RequirementNode:
        if any([amount < 0 for amount in requirement.amounts.values()]):
            raise ValueError(f"Requirement {requirement.label!r} asks for a negative amount.")
        parts = [self._node(part, phase=phase, level=part.level) for part in requirement.parts]
        amounts = tuple(sorted(requirement.amounts.items()))
        pin = () if requirement.pinned is None else (requirement.pinned,)
        form = (level, amounts, tuple(sorted([part.form for part in parts])), pin, phase.value)
        node = RequirementNode(requirement, level, phase, amounts, parts, form)
        self._measure(node)
        node.viable = self._viable_locations(node)
        node.parts = sorted(parts, key=lambda part: part.rank)
        return node

    def _measure(self, node: RequirementNode) -> None:
        for part in node.parts_as_given:
            node.total.update(part.total)
        node.total.update({(node.level, base): amount for base, amount in node.amounts})
        parts = [part.size for part in node.parts_as_given]
        amount = sum([amount for _base, amount in node.amounts])
        node.size = 1 + sum([count for count, _amount in parts]), amount + sum([amount for _count, amount in parts])

    def _viable_locations(self, node: RequirementNode) -> frozenset[int]:
        known = self._viable.get(node.form)
        if known is None:
            inside = self._locations.below(0, node.level) if node.level else [0]
            known = frozenset([location for location in inside if self._could_serve(node, location)])
            self._viable[node.form] = known
        return known

    def _could_serve(self, node: RequirementNode, location: int) -> bool:
        place = self._locations.all[location]
        if node.requirement.pinned is not None and node.requirement.pinned != place.path:
            return False
        if not all([self._fits(location, base, amount, node.phase) for base, amount in node.amounts]):
            return False
        if not all([any([location < inner < place.end for inner in part.viable]) for part in node.parts_as_given]):
            return False
        return self.has_room(location, node.total)

    def _fits(self, location: int, base: str, amount: int, phase: Phase) -> bool:
        capacity = self._locations.all[location].capacities.get(base)
        if capacity is None:
            return False
        if not capacity.scorer.diminishing:
            return True
        return capacity.scorer.judge(capacity.allocatable, capacity.used, (amount,), phase).fits

    def has_room(self, location: int, total: Counter[tuple[str, str]]) -> bool:
        """Tell whether the sums of what is free in a location and inside it could be enough.

        Resources that do not add up have no such sum; whether they fit is for their scorers to say.
        """
        free = self._free[location]
        return all([amount <= free[key] for key, amount in total.items() if amount and key in free])

    def exclude_each_other(self, nodes: Sequence[RequirementNode]) -> bool:
        """Tell whether no two of some requirements could ever be served by one location; False if that is not sure."""
        kinds: dict[Form, list[RequirementNode]] = {}
        for node in nodes:
            kinds.setdefault(node.form, []).append(node)
        # Two of a kind stand for all pairs of it.
        some = [node for alike in kinds.values() for node in alike[:2]]
        return all([self._are_apart(one, other) for one, other in combinations(some, 2) if one.level == other.level])

    def _are_apart(self, one: RequirementNode, other: RequirementNode) -> bool:
        both = one.total + other.total
        return not any([self.has_room(location, both) for location in one.viable & other.viable])

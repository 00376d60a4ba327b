"""Requirements as the search sees them: where each could go, and the order in which to place them.

The order depends on what is asked for and where it fits, never on labels: the requirement with the fewest locations
goes first, then the one that asks for the most. Requirements that differ only in their labels are interchangeable.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from placement.allocators.group.locations import Locations
from placement.allocators.group.scorers import Phase
from placement.allocators.group.tree import Requirement

Form = tuple[object, ...]
"""Everything about a requirement except labels."""


@dataclass(slots=True)
class RequirementNode:
    """A requirement, annotated for the search.

    Args:
        level: its level; "" for an outermost one.
        amounts: what the location itself must offer.
        parts_as_given: the nodes of the requirement's parts, in their order.
        parts: the same in search order.
        form: everything but the labels.
        viable: the locations where it would fit if it were alone.
        total: the summed amounts by (level, resource), parts included.
        size: the number of requirements, itself and its parts included, and the sum of all amounts.
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
        """The sort key among sibling requirements."""
        return len(self.viable), -self.size[0], -self.size[1], self.form

    @property
    def rank_of_container(self) -> tuple[object, ...]:
        """The sort key among containers: running ones come first."""
        return self.phase is not Phase.RUNNING, self._scarcest(), *self.rank

    def _scarcest(self) -> int:
        """Return the number of locations where the most constrained part would fit."""
        return min([len(self.viable), *[part._scarcest() for part in self.parts_as_given]])


class Requirements:
    """Builds nodes from requirements, for one tree of locations."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self._viable: dict[Form, frozenset[int]] = {}
        self._free = [locations.free(index) for index in range(len(locations.all))]

    def nodes(self, containers: Sequence[Requirement]) -> list[RequirementNode]:
        """Return the nodes of containers, in the order given.

        Raises:
            ValueError: an amount is negative.
        """
        return [self._node(requirement, phase=requirement.phase, level="") for requirement in containers]

    def _node(self, requirement: Requirement, *, phase: Phase, level: str) -> RequirementNode:
        if any([amount < 0 for amount in requirement.amounts.values()]):
            raise ValueError(f"Requirement {requirement.label!r} asks for a negative amount.")
        parts = [self._node(part, phase=phase, level=part.level) for part in requirement.parts]
        amounts = tuple(sorted(requirement.amounts.items()))
        only = () if requirement.only is None else (tuple(sorted(requirement.only)),)
        form = (level, amounts, tuple(sorted([part.form for part in parts])), only, phase.value)
        node = RequirementNode(requirement, level, phase, amounts, parts, form)
        for part in parts:
            node.total.update(part.total)
        node.total.update({(level, base): amount for base, amount in amounts})
        sizes = [(1, sum([amount for _base, amount in amounts])), *[part.size for part in parts]]
        node.size = sum([count for count, _amount in sizes]), sum([amount for _count, amount in sizes])
        if form not in self._viable:
            inside = self._locations.below(0, level) if level else [0]
            self._viable[form] = frozenset([location for location in inside if self._could_serve(node, location)])
        node.viable = self._viable[form]
        node.parts = sorted(parts, key=lambda part: part.rank)
        return node

    def _could_serve(self, node: RequirementNode, location: int) -> bool:
        place = self._locations.all[location]
        if node.requirement.only is not None and place.path not in node.requirement.only:
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
        """Tell whether a location and everything inside it could have enough free in total.

        Resources that do not add up have no such total; only their scorers can tell whether they fit.
        """
        free = self._free[location]
        return all([amount <= free[key] for key, amount in total.items() if amount and key in free])

    def exclude_each_other(self, nodes: Sequence[RequirementNode]) -> bool:
        """Tell whether no two of these requirements could ever share a location; False if that is not certain."""
        forms: dict[Form, list[RequirementNode]] = {}
        for node in nodes:
            forms.setdefault(node.form, []).append(node)
        # Two of a form represent all of its pairs.
        return not any(
            [
                self.has_room(location, node.total + second.total)
                for node, second in combinations([node for alike in forms.values() for node in alike[:2]], 2)
                for location in node.viable & second.viable
            ]
        )

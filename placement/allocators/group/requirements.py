"""Requirements as the search sees them: where each could go, and in which order they are placed.

The order depends on what is asked for and where it fits, never on labels: the requirement with the fewest locations
goes first, then the one that asks for the most. Requirements that differ only in their labels are interchangeable.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from placement.allocators.group.locations import Locations
from placement.allocators.group.tree import ANYWHERE, Phase, Requirement

Form = tuple[object, ...]
"""Everything about a requirement except labels."""

Trail = tuple[int, ...]
"""The path from just below the enclosing requirement's location down to a location that a requirement may have."""

OUTERMOST = -1


@dataclass(slots=True)
class RequirementNode:
    """A requirement, annotated for the search.

    Args:
        level: its level; "" for an outermost one.
        amounts: what the location itself must offer.
        parts, parts_as_given: the nodes of its parts in search order, and in that of the requirement.
        form: everything but the labels.
        viable: the locations where it would fit if it were alone.
        total: the summed amounts by (level, resource), parts included.
        size: the number of requirements, itself and its parts included, and the sum of all amounts.
        index: its position in the search.
        parent: the position of the enclosing requirement; OUTERMOST for a container.
        container: the number of its container in the search.
        siblings: the number of the group of requirements that must not share a location; 0 if there is no such rule.
        notes: marks on its location for as long as later decisions depend on it: its index + 1 while parts of it are to
            come, minus the group number while siblings are.
        ends: the notes that expire once it is placed, as (index of their requirement, note).
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
    index: int = 0
    parent: int = OUTERMOST
    container: int = 0
    siblings: int = 0
    notes: tuple[int, ...] = ()
    ends: list[tuple[int, int]] = field(default_factory=list)

    @property
    def rank(self) -> tuple[object, ...]:
        """The sort key among sibling requirements."""
        return len(self.viable), -self.size[0], -self.size[1], self.form

    def walk(self) -> Iterator["RequirementNode"]:
        """Yield this requirement and all its parts in search order."""
        yield self
        for part in self.parts:
            yield from part.walk()


class Requirements:
    """The requirements of some containers, for one tree of locations.

    Args:
        distinct: whether parts of one requirement that have the same level, except ANYWHERE, must not share a location.

    Raises:
        ValueError: an amount is negative.
    """

    def __init__(self, locations: Locations, containers: Sequence[Requirement], *, distinct: bool) -> None:
        self._locations = locations
        self._viable: dict[Form, frozenset[int]] = {}
        self._trails: dict[tuple[int, int], list[Trail]] = {}
        self._free = [locations.free(index) for index in range(len(locations.all))]
        self.containers = [self._node(requirement, phase=requirement.phase, level="") for requirement in containers]
        """The outermost ones, in the order given."""
        # Running ones first, then the one whose hardest part has the fewest locations.
        ordered = sorted(
            self.containers,
            key=lambda node: (node.phase is not Phase.RUNNING, min([len(n.viable) for n in node.walk()]), node.rank),
        )
        self.in_order = [node for container in ordered for node in container.walk()]
        """All of them, in search order."""
        for index, node in enumerate(self.in_order):
            node.index = index
        for number, container in enumerate(ordered):
            for node in container.walk():
                node.container = number
        self._sibling_groups = 0
        for node in self.in_order:
            for part in node.parts:
                part.parent = node.index
            if distinct:
                self._keep_apart(node)
            if node.parent != OUTERMOST and node.parts:
                self._note(node, node.index + 1, last=node.index + node.size[0] - 1)

    def _keep_apart(self, node: RequirementNode) -> None:
        """Number the groups of a requirement's parts that must not share a location, and note who has taken one."""
        levels = Counter([part.level for part in node.parts if part.level != ANYWHERE])
        for level in [level for level, count in levels.items() if count > 1]:
            self._sibling_groups += 1
            siblings = [part for part in node.parts if part.level == level]
            for part in siblings:
                part.siblings = self._sibling_groups
            for part in siblings[:-1]:
                self._note(part, -part.siblings, last=siblings[-1].index)

    def _note(self, node: RequirementNode, note: int, *, last: int) -> None:
        """Mark a requirement's location until the ``last`` one has been placed."""
        node.notes = (*node.notes, note)
        self.in_order[last].ends.append((node.index, note))

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
        # What may fit only once something else is placed, its scorer does not rule out.
        for base, amount in node.amounts:
            if (capacity := place.capacities.get(base)) is None:
                return False
            allocatable, scorer, used = capacity
            if scorer.diminishing and not scorer.judge(allocatable, used, (amount,), node.phase).fits:
                return False
        has_inside = all([any([location < inner < place.end for inner in part.viable]) for part in node.parts_as_given])
        return has_inside and self.has_room(location, node.total)

    def has_room(self, location: int, total: Counter[tuple[str, str]]) -> bool:
        """Tell whether a location and all inside it could have enough free in total, of resources that add up."""
        free = self._free[location]
        return all([amount <= free[key] for key, amount in total.items() if amount and key in free])

    def trails(self, node: RequirementNode, around: int) -> list[Trail]:
        """Return where a requirement may go inside a location, in natural order."""
        if node.parent == OUTERMOST:
            return [(0,)] if 0 in node.viable else []
        trails = self._trails.get(key := (node.index, around))
        if trails is None:
            inside = [inner for inner in self._locations.below(around, node.level) if inner in node.viable]
            trails = self._trails[key] = [self._locations.trail(around, inner) for inner in inside]
        return trails

    def exclude_each_other(self, nodes: Sequence[RequirementNode]) -> bool:
        """Tell whether no two of these requirements could ever share a location; False if that is not certain."""
        pairs = {(node.form, second.form): (node, second) for node, second in combinations(nodes, 2)}
        return not any(
            [
                self.has_room(location, node.total + second.total)
                for node, second in pairs.values()
                for location in node.viable & second.viable
            ]
        )

"""Groups of a request that may get in each other's way, because they want the same devices or are tied by rules.

Say a request wants two GPUs and, of different NICs, a fast port and a slow one. No NIC is a GPU, so among given places
the GPUs can be chosen as if nothing else were asked for. But the two ports may want the same NIC: they are rivals.
``rivals`` tells what they cost on a host.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.request import Group, Host, InOnePlace, Joint, Request
from placement.allocators.devices.supplies import PlacedOption, Supplies

Rows = Mapping[int, Sequence[PlacedOption]]
"""Group index -> its options."""


class Ruling(NamedTuple):
    """A rule with its level; ``least`` is a lower bound on the number of places for which it counts as missed."""

    rule: Joint | InOnePlace
    level: int
    least: int


class Rivalry:
    """Groups that compete for devices or are tied by rules, whichever of the devices fit best.

    Args:
        request: the whole request.
        rows: the options of these groups.
        rules: the rules about them.
        conditions: the number of conditions they have to meet.
    """

    def __init__(self, request: Request, rows: Rows, rules: Sequence[Ruling], *, conditions: int) -> None:
        self._request = request
        self.rows = rows
        self.rules = rules
        self.conditions = conditions
        self.groups = request.groups

    def may_be_served(self, region: int) -> bool:
        """Tell whether a region may have enough for all of them."""
        return self._supplies.suffice(region)

    def inside(self, region: int) -> list[DeviceOption]:
        """Return their options in a region, in the order of numbers."""
        return sorted([one.option for row in self.rows.values() for one in row if not one.place & ~region])

    @cached_property
    def form(self) -> Hashable:
        """What tells these groups and the rules about them from others of the same request, devices aside."""
        wants = [
            (index, one.count, one.per_subtree, one.stands_for, one.by_card, one.apart, tuple(one.amounts.items()))
            for index, one in [(index, self.groups[index]) for index in self.rows]
        ]
        return tuple(wants), tuple(self.rules), self.conditions

    @cached_property
    def alone(self) -> Request:
        """The request reduced to these groups; the others ask for nothing."""
        groups = [
            group if index in self.rows else replace(group, count=0, per_subtree=False, by_card=False)
            for index, group in enumerate(self.groups)
        ]
        rules = [one.rule for one in self.rules]
        return Request(
            groups=tuple(groups),
            joint=tuple([rule for rule in rules if isinstance(rule, Joint)]),
            within=tuple([rule for rule in rules if isinstance(rule, InOnePlace)]),
            conditions=self.conditions,
        )

    @cached_property
    def _supplies(self) -> Supplies:
        return Supplies(self._request, self.rows, [one for row in self.rows.values() for one in row])


def rivalries_of(host: Host, request: Request, options: Iterable[PlacedOption]) -> list[Rivalry]:
    """Partition the groups of a request into independent sets.

    Args:
        host: the host.
        request: the request, without twins.
        options: the devices that may serve the groups.
    """
    rows: dict[int, list[PlacedOption]] = {index: [] for index in range(len(request.groups))}
    for one in options:
        rows[one.option.group].append(one)
    rulings = [*_rulings(host, request, rows)]
    indices = {group.label: index for index, group in enumerate(request.groups)}
    tied = [{indices[label] for label in _labels(one.rule)} for one in rulings]
    meeting = {index for index, group in enumerate(request.groups) if any(group.meets.values())} or {0}
    found = []
    ties = [*tied, *[meeting] * (request.conditions > 0)]
    for groups in _joined([{index} for index in rows], _beside(request, rows), ties):
        rules = [one for one, of in zip(rulings, tied, strict=True) if of <= groups]
        conditions = request.conditions if meeting <= groups else 0
        some = {index: rows[index] for index in sorted(groups)}
        found.append(Rivalry(request, some, rules, conditions=conditions))
    return found


def has_room_alone(option: DeviceOption, group: Group) -> bool:
    """Tell whether a device has room for a group when it serves no other."""
    room, times = option.device.room, option.turn + 1
    return all([times * amount <= room[name] for name, amount in group.amounts.items() if name in room])


def _rulings(host: Host, request: Request, rows: Rows) -> Iterator[Ruling]:
    """Yield the rules about levels at which any of their devices is in a place."""
    indices = {group.label: index for index, group in enumerate(request.groups)}
    rules: list[Joint | InOnePlace] = [*request.joint, *request.within]
    for rule in rules:
        level = host.levels.index(rule.level)
        of = [(request.groups[index], rows[index]) for index in [indices[label] for label in _labels(rule)]]
        are_placed = [[one.option.device.path[level] is not None for one in row] for _group, row in of]
        if any([any(placed) for placed in are_placed]):
            touches = any([group.count and all(placed) for (group, _row), placed in zip(of, are_placed, strict=True)])
            yield Ruling(rule, level, int(isinstance(rule, InOnePlace) and not rule.required and touches))


def _labels(rule: Joint | InOnePlace) -> Sequence[str]:
    return (rule.primary, *rule.secondaries) if isinstance(rule, Joint) else rule.groups


def _beside(request: Request, rows: Rows) -> Iterator[set[int]]:
    """Yield sets of groups that may compete on some device."""
    served: dict[str, set[int]] = defaultdict(set)
    rooms: dict[str, Mapping[str, float]] = {}
    for index, row in rows.items():
        for _place, option in row:
            served[option.device.name].add(index)
            rooms[option.device.name] = option.device.room
    for together, names in {(frozenset(groups), tuple(rooms[name])) for name, groups in served.items()}:
        yield {index for index in together if request.groups[index].apart}
        yield from [{index for index in together if name in request.groups[index].amounts} for name in names]


def _joined(*sets: Iterable[set[int]]) -> list[set[int]]:
    """Merge sets that have elements in common."""
    joined: list[set[int]] = []
    for some in sets:
        for one in some:
            touched = [other for other in joined if not other.isdisjoint(one)]
            joined = [other for other in joined if other.isdisjoint(one)]
            joined += [one.union(*touched)] if one else []
    return joined

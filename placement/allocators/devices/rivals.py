"""Groups that may get in each other's way: what they would cost if they did not, and whether they do.

Say a request wants two GPUs and, of different NICs, a fast port and a slow one. No NIC is a GPU, so among given places
the GPUs can be chosen as if nothing else were asked for. But the two ports may want the same NIC: they are rivals. Even
so, the best NIC for one is often not the best for the other, and both are content. Only if they are not, a search has
to decide, and only for these two.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.request import Group, Host, InOnePlace, Joint, Request
from placement.allocators.devices.supplies import PlacedOption, Supplies

EVERYWHERE = -1
"""The region of all places."""

Rows = Mapping[int, Sequence[PlacedOption]]
"""Group index -> its options, the cheapest first."""


class Ruling(NamedTuple):
    """A rule with its level; ``least`` is a lower bound on the number of places for which it counts as missed."""

    rule: Joint | InOnePlace
    level: int
    least: int


class Rivals:
    """Groups that compete for devices or are tied by rules. Within a region, their cost is independent of other groups.

    Args:
        request: the whole request.
        rows: the options of these groups.
        rules: the rules about them.
        own: the options' own costs.
        conditions: the number of conditions they have to meet.
    """

    def __init__(
        self, request: Request, rows: Rows, rules: Sequence[Ruling], *, own: OwnCosts, conditions: int
    ) -> None:
        self._request = request
        self._rows = rows
        self._rules = rules
        self._conditions = conditions
        self.groups = request.groups
        self._missed = sum([own.packing.missed[one.level] * one.least for one in rules])
        self._known: dict[int, list[PlacedOption] | None] = {}

    def least(self, region: int) -> int | None:
        """Return a lower bound on their cost in a region; None if there are too few devices for any of them."""
        found = self._cheapest(region)
        return None if found is None else self._missed + sum([one.cost for one in found])

    def are_content(self, region: int) -> bool:
        """Tell whether that bound is achieved, because each of them can have its cheapest options."""
        found = [one.option for one in self._cheapest(region) or ()]
        return self._have_room(found) and all([self._keeps(one, found) for one in self._rules]) and self._meet(found)

    def may_be_served(self, region: int) -> bool:
        """Tell whether a region may have enough for all of them."""
        return self._supplies.suffice(region)

    def inside(self, region: int) -> list[DeviceOption]:
        """Return their options in a region, in the order of numbers."""
        return sorted([one.option for row in self._rows.values() for one in row if not one.place & ~region])

    @cached_property
    def form(self) -> Hashable:
        """What tells these groups and the rules about them from others of the same request, devices aside."""
        wants = [
            (index, one.count, one.per_subtree, one.stands_for, one.by_card, one.apart, tuple(one.amounts.items()))
            for index, one in [(index, self.groups[index]) for index in self._rows]
        ]
        return tuple(wants), tuple(self._rules), self._conditions

    @cached_property
    def alone(self) -> Request:
        """The request reduced to these groups; the others ask for nothing."""
        groups = [
            group if index in self._rows else replace(group, count=0, per_subtree=False, by_card=False)
            for index, group in enumerate(self.groups)
        ]
        rules = [one.rule for one in self._rules]
        return Request(
            groups=tuple(groups),
            joint=tuple([rule for rule in rules if isinstance(rule, Joint)]),
            within=tuple([rule for rule in rules if isinstance(rule, InOnePlace)]),
            conditions=self._conditions,
        )

    @cached_property
    def _supplies(self) -> Supplies:
        return Supplies(self._request, self._rows, [one for row in self._rows.values() for one in row])

    def _cheapest(self, region: int) -> list[PlacedOption] | None:
        """Return the cheapest options of each group in a region; None if there are too few."""
        if region not in self._known:
            found: list[PlacedOption] = []
            for index, row in self._rows.items():
                group = self.groups[index]
                some = _cheapest_of(row, group, ~region)
                if len(some) < group.count:
                    self._known[region] = None
                    return None
                found += some
            self._known[region] = found
        return self._known[region]

    def _have_room(self, chosen: Collection[DeviceOption]) -> bool:
        on_device: dict[str, list[DeviceOption]] = defaultdict(list)
        for option in chosen:
            on_device[option.device.name].append(option)
        return all([self._has_room(options) for options in on_device.values() if len(options) > 1])

    def _has_room(self, options: Sequence[DeviceOption]) -> bool:
        """Tell whether a device has room for several options of it."""
        groups = [self.groups[one.group] for one in options]
        if sum([group.apart for group in groups]) > 1:
            return False
        rooms = options[0].device.room.items()
        return all([sum([group.amounts.get(name, 0) for group in groups]) <= room for name, room in rooms])

    def _keeps(self, ruling: Ruling, chosen: Collection[DeviceOption]) -> bool:
        """Tell whether a rule is satisfied as well as it can be."""
        rule, level, least = ruling
        if isinstance(rule, InOnePlace):
            places = self._touched(rule.groups, level, chosen)
            return rule.stands_for == 1 and len(places) <= (1 if rule.required else least)
        labels = (rule.primary, *rule.secondaries)
        is_plain = all([one.stands_for == 1 for one in self.groups if one.label in labels])
        primaries = self._touched([rule.primary], level, chosen)
        return is_plain and all([self._touched([one], level, chosen) == primaries for one in rule.secondaries])

    def _touched(self, labels: Collection[str], level: int, chosen: Iterable[DeviceOption]) -> set[str | None]:
        groups = self.groups
        return {one.device.path[level] for one in chosen if groups[one.group].label in labels} - {None}

    def _meet(self, chosen: Iterable[DeviceOption]) -> bool:
        """Tell whether these options together meet all conditions."""
        met = 0
        for option in chosen if self._conditions else ():
            met |= self.groups[option.group].meets.get(option.device.name, 0)
        return met == (1 << self._conditions) - 1


def rivals_of(host: Host, request: Request, options: Iterable[PlacedOption], *, own: OwnCosts) -> list[Rivals]:
    """Partition the groups of a request into independent sets.

    Args:
        host: the host.
        request: the request, without twins.
        options: the devices that may serve the groups.
        own: the options' own costs.
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
        some = {index: sorted(rows[index]) for index in sorted(groups)}
        found.append(Rivals(request, some, rules, own=own, conditions=conditions))
    return found


def _cheapest_of(row: Sequence[PlacedOption], group: Group, outside: int) -> list[PlacedOption]:
    """Return the cheapest options inside a region, as many as the group needs or fewer if there are not enough."""
    found: list[PlacedOption] = []
    of_cards: Counter[str] = Counter()
    for one in row:
        if len(found) == group.count:
            break
        if one.place & outside:
            continue
        if group.by_card:
            if of_cards[one.option.device.whole] == group.stands_for:
                continue
            of_cards[one.option.device.whole] += 1
        found.append(one)
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
        for _cost, _place, option in row:
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

"""Identical groups, and identical ties between groups: searched for as one, whose devices are then divided among them.

Eight groups of one device each have 2^8 combinations of counts, one group of eight has nine. Groups are compared by the
devices that remain for them, so differently worded groups are twins if these devices are the same. Where it matters
which group gets which device, the devices are dealt: place by place, each goes to the next group in turn. How many
devices the groups have in a place then differs by one at most, no group gets a device twice or two of one card, and in
a place with enough for all of them, each group has one.

A tie is a rule that groups are in one place, and that one of their devices is the place itself, such as a switch with a
GPU and a NIC below it. Identical ties are searched for as one, whose groups need so many times as many devices, with a
whole number of ties in each place.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

from placement.allocators.devices.request import (
    Device,
    DeviceOption,
    DividedCards,
    Group,
    Host,
    InOnePlace,
    Request,
    nesting,
)


@dataclass(frozen=True, slots=True)
class IdenticalTies:
    """Identical ties, represented in the search by the first of them.

    Args:
        level: the level at which a tie is in one place.
        groups: for each tie the labels of its groups, in corresponding order.
        counts: the number of devices that each of these groups needs.
    """

    level: int
    groups: Sequence[Sequence[str]]
    counts: Sequence[int]

    def shared_out(self, devices: Mapping[str, Sequence[str]], host: Host) -> dict[str, tuple[str, ...]]:
        """Divide the devices found for the first tie's groups among the groups of all ties."""
        at = {device.name: device.path[self.level] for device in host.devices}
        rows: list[dict[str | None, list[str]]] = []
        for label in self.groups[0]:
            row: dict[str | None, list[str]] = defaultdict(list)
            for name in devices[label]:
                row[at[name]].append(name)
            rows.append(row)
        ties = iter(self.groups)
        shared: dict[str, tuple[str, ...]] = {}
        for place, first in rows[0].items():
            for number in range(len(first) // self.counts[0]):
                for label, row, count in zip(next(ties), rows, self.counts, strict=True):
                    shared[label] = tuple(row[place][number * count : (number + 1) * count])
        return shared


def without_identical_ties(host: Host, request: Request) -> tuple[Host, Request, Sequence[IdenticalTies]]:
    """Merge identical ties; return the host and the request without the others, and the merged ties."""
    alike: dict[object, list[InOnePlace]] = defaultdict(list)
    for rule in request.within:
        if _can_be_merged(rule, host, request):
            level = host.levels.index(rule.level)
            places = tuple([device.path[level] for device in host.devices])
            alike[places, tuple([wants for wants, _group in _in_order(rule, request)])].append(rule)
    families = [rules for rules in alike.values() if len(rules) > 1]
    if not families:
        return host, request, ()
    reduced = _without_levels(host, [host.levels.index(rule.level) for rules in families for rule in rules[1:]])
    merged = []
    for rules in families:
        groups = [[group for _wants, group in _in_order(rule, request)] for rule in rules]
        labels = [[group.label for group in of_tie] for of_tie in groups]
        level = reduced.levels.index(rules[0].level)
        merged.append(IdenticalTies(level, labels, [group.count for group in groups[0]]))
    return reduced, _with_one_of_each(request, families), merged


def _can_be_merged(rule: InOnePlace, host: Host, request: Request) -> bool:
    """Tell whether a rule is a tie whose groups can be counted together.

    One of its groups must consist of nothing but places, so that nothing else has to ensure that the place is taken.
    """
    uncounted = host.levels[len(host.levels) - host.uncounted :]
    if not rule.required or rule.condition is None or rule.level not in uncounted:
        return False
    groups, bit = [group for group in request.groups if group.label in rule.groups], 1 << rule.condition
    joined = {label for joint in request.joint for label in joint.groups}
    return (
        any([all([group.meets.get(name, 0) & bit for name in group.options]) for group in groups])
        and not any(
            [group.per_subtree or (group.count > 1 and (not group.is_isolated or group.by_card)) for group in groups]
        )
        and joined.isdisjoint(rule.groups)
    )


def _in_order(rule: InOnePlace, request: Request) -> list[tuple[tuple[object, ...], Group]]:
    """Return the groups of a tie, each with what it needs regardless of which tie it belongs to, sorted by that.

    How well devices serve a group does not matter: a plan is for all hosts that differ in nothing else.
    """
    assert rule.condition is not None
    options = [group.options for group in request.groups]
    wanting = []
    for group in request.groups:
        if group.label in rule.groups:
            meets = {name: mask & ~(1 << rule.condition) for name, mask in group.meets.items()}
            of_group = [
                n
                for n, other_rule in enumerate(request.within)
                if other_rule is not rule and group.label in other_rule.groups
            ]
            numbers = [tuple(sorted(numbers.items())) for numbers in (group.amounts, meets)]
            rules = (group.is_isolated, group.takes, group.count, group.by_card, group.exclusive, tuple(of_group))
            wanting.append(((*numbers, *rules, options.index(group.options)), group))
    return sorted(wanting, key=itemgetter(0))


def _without_levels(host: Host, levels: Sequence[int]) -> Host:
    """Remove some of the uncounted levels from a host."""

    def kept_levels(path: Sequence[str | None]) -> tuple[str | None, ...]:
        return tuple([place for level, place in enumerate(path) if level not in levels])

    names = tuple([name for level, name in enumerate(host.levels) if level not in levels])
    devices = tuple(
        [Device(device.name, kept_levels(device.path), device.room, device.card) for device in host.devices]
    )
    return Host(names, devices, host.in_use, host.uncounted - len(levels))


def _with_one_of_each(request: Request, families: Sequence[Sequence[InOnePlace]]) -> Request:
    """Return a request in which the first tie of each family stands for all of them; conditions are renumbered."""
    times = {label: len(rules) for rules in families for label in rules[0].groups}
    gone = {label for rules in families for rule in rules[1:] for label in rule.groups}
    merged = {rule.condition for rules in families for rule in rules}
    bits = [bit for bit in range(request.conditions) if bit not in merged]
    groups = []
    for group in [group for group in request.groups if group.label not in gone]:
        meets = {
            name: sum([1 << new for new, old in enumerate(bits) if mask >> old & 1])
            for name, mask in group.meets.items()
        }
        number = times.get(group.label, 1)
        groups.append(replace(group, count=group.count * number, stands_for=number, meets=meets))
    stand_for = {rules[0].level: len(rules) for rules in families}
    levels = {rule.level for rules in families for rule in rules[1:]}
    within = [
        replace(
            rule,
            groups=tuple([label for label in rule.groups if label not in gone]),
            condition=bits.index(rule.condition) if rule.condition in bits else None,
            stands_for=stand_for.get(rule.level, 1),
        )
        for rule in request.within
        if rule.level not in levels
    ]
    return replace(request, groups=tuple(groups), within=tuple(within), conditions=len(bits))


class Family(NamedTuple):
    """Twins that are searched for as one, and whether it matters which devices each of them gets."""

    groups: Sequence[Group]
    is_dealt: bool = False


Twins = Mapping[str, Family]
"""Label of a group in the search -> the groups that it represents."""


def without_twins(host: Host, request: Request) -> tuple[Request, Twins]:
    """Merge groups that are interchangeable; return the reduced request, and which groups each group represents."""
    primaries = {joint.primary for joint in request.joint}
    counting = {group.label for group in request.groups if _counts_cards(group)}
    alone = counting if counting and len(DividedCards(host.devices)) else set()
    kinds = [
        group.label if group.label in primaries | alone or group.stands_for > 1 else _kind(group, request)
        for group in request.groups
    ]
    numbers, families = Counter(kinds), defaultdict[object, list[Group]](list)
    for group, kind in zip(request.groups, kinds, strict=True):
        # Comparing which devices may serve two groups takes longest, and most groups differ in something else.
        served_by = frozenset(group.options.items()), frozenset(group.meets.items())
        families[kind if numbers[kind] == 1 else (kind, served_by)].append(group)
    groups = tuple([_as_one(family) for family in families.values()])
    twins = {
        group.label: Family(family, _is_dealt(family[0], request))
        for group, family in zip(groups, families.values(), strict=True)
    }
    if len(groups) == len(request.groups):
        return (request if groups == request.groups else replace(request, groups=groups)), twins

    def kept(labels: Sequence[str]) -> tuple[str, ...]:
        return tuple([label for label in labels if label in twins])

    joint = tuple([replace(rule, secondaries=kept(rule.secondaries)) for rule in request.joint])
    within = tuple([replace(rule, groups=kept(rule.groups)) for rule in request.within])
    return replace(request, groups=groups, joint=joint, within=within), twins


def shared_out(host: Host, chosen: Sequence[DeviceOption], family: Family) -> dict[str, tuple[str, ...]]:
    """Divide the devices of a family among its groups.

    >>> from placement.allocators.devices.request import Device
    >>> cloud = Host(("pcie",), tuple([Device(f"gpu{n}", (f"pcie{n // 2}",)) for n in range(4)]))
    >>> gpus = [DeviceOption(number, 0, device) for number, device in enumerate(cloud.devices)]
    >>> pairs = [Group(label=label, options={}, count=2) for label in "ab"]
    >>> shared_out(cloud, gpus, Family(pairs))
    {'a': ('gpu0', 'gpu1'), 'b': ('gpu2', 'gpu3')}
    >>> shared_out(cloud, gpus, Family(pairs, is_dealt=True))
    {'a': ('gpu0', 'gpu2'), 'b': ('gpu1', 'gpu3')}
    """
    groups = family.groups
    if len(groups) == 1:
        return {groups[0].label: _names(chosen)}
    if family.is_dealt:
        in_order = sorted(chosen, key=_place_by_place(host, chosen))
        hands = [sorted(in_order[first :: len(groups)]) for first in range(len(groups))]
        return {group.label: _names(hand) for group, hand in zip(groups, hands, strict=True)}
    remaining = iter(chosen)
    return {group.label: _names([next(remaining) for _number in range(group.count)]) for group in groups}


def _names(options: Sequence[DeviceOption]) -> tuple[str, ...]:
    return tuple([option.device.name for option in options])


def _place_by_place(host: Host, chosen: Sequence[DeviceOption]) -> Callable[[DeviceOption], tuple[int, ...]]:
    """Return a sort key that keeps the devices of a place together, at every level, and those of a card."""
    order = nesting({device.path for device in host.devices}, len(host.levels)) or range(len(host.levels))

    def stands(option: DeviceOption) -> list[object]:
        return [*[option.device.path[level] or option.number for level in order], option.device.whole]

    # Places are ordered by their first devices, so that their names do not matter.
    first: dict[object, int] = {}
    for option in sorted(chosen):
        path = stands(option)
        for depth in range(len(path)):
            first.setdefault(tuple(path[: depth + 1]), option.number)

    def key(option: DeviceOption) -> tuple[int, ...]:
        path = stands(option)
        return (*[first[tuple(path[: depth + 1])] for depth in range(len(path))], option.number)

    return key


def _counts_cards(group: Group) -> bool:
    """Tell whether a group may have several devices, all of different cards."""
    return group.by_card and (group.count > 1 or group.per_subtree)


def _is_dealt(group: Group, request: Request) -> bool:
    """Tell whether it matters which devices each group of a family gets."""
    is_joined = any([group.label in rule.secondaries for rule in request.joint])
    return group.per_subtree or (group.count > 1 and (is_joined or not group.is_isolated or group.by_card))


def _kind(group: Group, request: Request) -> object:
    """Return a key that twins share, whichever devices may serve them."""
    rules = tuple([number for number, rule in enumerate(request.within) if group.label in rule.groups])
    joint = tuple([number for number, rule in enumerate(request.joint) if group.label in rule.secondaries])
    is_dealt = joint or group.by_card or group.per_subtree or not group.is_isolated
    of_equal_count = group.count if is_dealt else None
    kind = (group.is_isolated, group.per_subtree, _counts_cards(group), group.exclusive, group.takes)
    return (frozenset(group.amounts.items()), *kind, rules, joint, of_equal_count)


def _as_one(family: Sequence[Group]) -> Group:
    first, counts_cards = family[0], _counts_cards(family[0])
    if len(family) == 1:
        return first if first.by_card == counts_cards else replace(first, by_card=counts_cards)
    count = sum([group.count for group in family])
    return replace(first, count=count, by_card=counts_cards, stands_for=len(family))

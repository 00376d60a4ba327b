"""Identical groups, and identical ties between groups: searched for as one, whose devices are then divided among them.

Eight groups of one device each have 2^8 combinations of counts, one group of eight has nine. Groups are twins if the
same devices remain for them, however they are worded. Where it matters which twin gets which device, devices are dealt:
place by place, each goes to the next in turn. So no group gets a device twice or two of one card, and in a place with
enough for all, each has one.

A tie is a rule that groups are in one place, and that one of their devices is the place itself, such as a switch with a
GPU and a NIC below it. Identical ties are searched for as one, whose groups need so many times as many devices, with a
whole number of ties in each place.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from placement.allocators.devices.request import DeviceOption, Group, Host, InOnePlace, Request, nesting


class IdenticalTies(NamedTuple):
    """Identical ties, of which the search sees the first: for each the labels of its groups, in corresponding order."""

    level: int
    groups: Sequence[Sequence[str]]
    counts: Sequence[int]
    """The number of devices that each of these groups needs."""

    def shared_out(self, devices: Mapping[str, Sequence[str]], host: Host) -> dict[str, tuple[str, ...]]:
        """Divide the devices found for the first tie's groups among the groups of all ties."""
        place_of = {device.name: device.path[self.level] for device in host.devices}
        rows: list[dict[str | None, list[str]]] = []
        for label in self.groups[0]:
            row: dict[str | None, list[str]] = defaultdict(list)
            for name in devices[label]:
                row[place_of[name]].append(name)
            rows.append(row)
        ties = iter(self.groups)
        shared: dict[str, tuple[str, ...]] = {}
        for place, first in rows[0].items():
            for number in range(len(first) // self.counts[0]):
                for label, row, count in zip(next(ties), rows, self.counts, strict=True):
                    shared[label] = tuple(row[place][number * count : (number + 1) * count])
        return shared


def without_identical_ties(host: Host, request: Request) -> tuple[Request, Sequence[IdenticalTies]]:
    """Return the request with the first of identical ties standing for all of them, and these ties."""
    alike: dict[object, list[tuple[InOnePlace, Sequence[Group]]]] = defaultdict(list)
    for rule in request.within:
        if _can_be_merged(rule, host, request):
            level = host.levels.index(rule.level)
            wants, groups = zip(*_in_order(rule, request), strict=True)
            alike[tuple([device.path[level] for device in host.devices]), wants].append((rule, groups))
    merged = []
    for ties in [ties for ties in alike.values() if len(ties) > 1]:
        (first, groups_of_first), *others = ties
        labels = [[group.label for group in groups_of_tie] for _rule, groups_of_tie in ties]
        merged.append(IdenticalTies(host.levels.index(first.level), labels, [group.count for group in groups_of_first]))
        request = _with_first(request, first, [rule for rule, _groups in others])
    return request, merged


def _with_first(request: Request, first: InOnePlace, others: Sequence[InOnePlace]) -> Request:
    """Return a request in which one tie stands for others as well: its places meet the conditions of all."""
    number, gone = 1 + len(others), {label for rule in others for label in rule.groups}
    bits = [1 << rule.condition for rule in (first, *others) if rule.condition is not None]

    def merged(group: Group) -> Group:
        meets = {name: mask | sum(bits) if mask & bits[0] else mask for name, mask in group.meets.items()}
        return replace(group, count=group.count * number, stands_for=number, meets=meets)

    kept = [group for group in request.groups if group.label not in gone]
    groups = [merged(group) if group.label in first.groups else group for group in kept]
    within = [
        replace(
            rule,
            groups=tuple([label for label in rule.groups if label not in gone]),
            stands_for=number if rule == first else rule.stands_for,
        )
        for rule in request.within
        if rule not in others
    ]
    return replace(request, groups=tuple(groups), within=tuple(within))


def _can_be_merged(rule: InOnePlace, host: Host, request: Request) -> bool:
    """Tell whether a rule is a tie whose groups can be counted together: one of them is only served by places."""
    uncounted = host.levels[len(host.levels) - host.uncounted :]
    if not rule.required or rule.condition is None or rule.level not in uncounted:
        return False
    groups, bit = [group for group in request.groups if group.label in rule.groups], 1 << rule.condition
    return (
        any([all([group.meets.get(name, 0) & bit for name in group.options]) for group in groups])
        and not any([_is_dealt(group, is_joined=False) for group in groups])
        and not any([group.label in joint.groups for joint in request.joint for group in groups])
    )


def _in_order(rule: InOnePlace, request: Request) -> list[tuple[tuple[object, ...], Group]]:
    """Return the groups of a tie with what each needs, misfits and the tie itself aside, sorted by that."""
    assert rule.condition is not None
    options = [group.options for group in request.groups]
    wanting = []
    for group in [group for group in request.groups if group.label in rule.groups]:
        meets = {name: mask & ~(1 << rule.condition) for name, mask in group.meets.items()}
        further = [n for n, rule_n in enumerate(request.within) if rule_n is not rule and group.label in rule_n.groups]
        numbers = [tuple(sorted(numbers.items())) for numbers in (group.amounts, meets)]
        rules = (group.is_isolated, group.takes, group.count, group.by_card, group.exclusive, tuple(further))
        wanting.append(((*numbers, *rules, options.index(group.options)), group))
    return sorted(wanting, key=itemgetter(0))


class Family(NamedTuple):
    """Twins that are searched for as one, and whether it matters which devices each of them gets."""

    groups: Sequence[Group]
    is_dealt: bool = False


def without_twins(request: Request) -> tuple[Request, Sequence[Family]]:
    """Merge groups that are interchangeable; return the reduced request, and the family of each of its groups."""
    primaries = {joint.primary for joint in request.joint}
    families = defaultdict[object, list[Group]](list)
    for group in request.groups:
        is_single = group.label in primaries or group.stands_for > 1
        families[group.label if is_single else _kind(group, request)].append(group)
    groups = []
    for first, *twins in families.values():
        group, by_card = first, _counts_cards(first)
        if twins:
            count = sum([first.count, *[twin.count for twin in twins]])
            group = replace(first, count=count, stands_for=1 + len(twins))
        groups.append(group if group.by_card == by_card else replace(group, by_card=by_card))
    joined = {label for rule in request.joint for label in rule.secondaries}
    merged = [Family(twins, _is_dealt(twins[0], is_joined=twins[0].label in joined)) for twins in families.values()]
    if groups == [*request.groups]:
        return request, merged
    labels = {group.label for group in groups}

    def kept(of_rule: Sequence[str]) -> tuple[str, ...]:
        return tuple([label for label in of_rule if label in labels])

    joint = tuple([replace(rule, secondaries=kept(rule.secondaries)) for rule in request.joint])
    within = tuple([replace(rule, groups=kept(rule.groups)) for rule in request.within])
    return replace(request, groups=tuple(groups), joint=joint, within=within), merged


def _kind(group: Group, request: Request) -> object:
    """Return a key that twins share."""
    rules = tuple([number for number, rule in enumerate(request.within) if group.label in rule.groups])
    joint = tuple([number for number, rule in enumerate(request.joint) if group.label in rule.secondaries])
    is_even = joint or group.by_card or group.per_subtree or not group.is_isolated
    served_by = frozenset(group.options.items()), frozenset(group.meets.items())
    kind = (group.is_isolated, group.per_subtree, _counts_cards(group), group.exclusive, group.takes)
    return (frozenset(group.amounts.items()), *kind, rules, joint, group.count if is_even else None, served_by)


def _counts_cards(group: Group) -> bool:
    """Tell whether a group may have several devices, all of different cards."""
    return group.by_card and (group.count > 1 or group.per_subtree)


def _is_dealt(group: Group, *, is_joined: bool) -> bool:
    """Tell whether it matters which devices each twin of a group gets."""
    return group.per_subtree or (group.count > 1 and (is_joined or not group.is_isolated or group.by_card))


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
    groups, remaining = family.groups, iter(chosen)
    if len(groups) == 1:
        hands = [[*chosen]]
    elif family.is_dealt:
        in_order = _place_by_place(host, chosen)
        hands = [sorted(in_order[first :: len(groups)]) for first in range(len(groups))]
    else:
        hands = [[next(remaining) for _number in range(group.count)] for group in groups]
    names = [tuple([option.device.name for option in hand]) for hand in hands]
    return {group.label: of_group for group, of_group in zip(groups, names, strict=True)}


def _place_by_place(host: Host, chosen: Sequence[DeviceOption]) -> list[DeviceOption]:
    """Sort devices so that those of a place, at every level, and of a card are together, whatever the names."""
    order = nesting({device.path for device in host.devices}, len(host.levels)) or range(len(host.levels))
    first: dict[object, int] = {}
    keys: dict[int, tuple[int, ...]] = {}
    for option in sorted(chosen):
        path = [*[option.device.path[level] or option.number for level in order], option.device.whole]
        around = [tuple(path[: depth + 1]) for depth in range(len(path))]
        keys[option.number] = (*[first.setdefault(place, option.number) for place in around], option.number)
    return sorted(chosen, key=lambda option: keys[option.number])

"""Identical groups of one request: searched for as one group, whose devices are then divided among them.

Eight groups of one device each have 2^8 combinations of counts, one group of eight has nine. Groups are compared by the
devices that remain for them, so differently worded groups are twins if these devices are the same.

Where it matters which group gets which device, the devices are dealt: place by place, each goes to the next group in
turn. How many devices the groups have in a place then differs by one at most, no group gets a device twice or two of
one card, and in a place with enough for all of them, each group has one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.request import DividedCards, Group, Host, Request, nesting


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
    numbers, found = Counter(kinds), defaultdict(list)
    for group, kind in zip(request.groups, kinds, strict=True):
        # Comparing which devices may serve two groups takes longest, and most groups differ in something else.
        found[kind if numbers[kind] == 1 else (kind, _served_by(group))].append(group)
    groups = tuple([_as_one(family) for family in found.values()])
    twins = {one.label: Family(of, _is_dealt(of[0], request)) for one, of in zip(groups, found.values(), strict=True)}
    if len(groups) == len(request.groups):
        return (request if groups == request.groups else replace(request, groups=groups)), twins

    def left(labels: Sequence[str]) -> tuple[str, ...]:
        return tuple([label for label in labels if label in twins])

    joint = tuple([replace(rule, secondaries=left(rule.secondaries)) for rule in request.joint])
    within = tuple([replace(rule, groups=left(rule.groups)) for rule in request.within])
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
    left = iter(chosen)
    return {group.label: _names([next(left) for _one in range(group.count)]) for group in groups}


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
    return group.per_subtree or (group.count > 1 and (is_joined or not group.apart or group.by_card))


def _kind(group: Group, request: Request) -> object:
    """Return a key that twins share, whichever devices may serve them."""
    rules = tuple([number for number, rule in enumerate(request.within) if group.label in rule.groups])
    joint = tuple([number for number, rule in enumerate(request.joint) if group.label in rule.secondaries])
    is_dealt = joint or group.by_card or group.per_subtree or not group.apart
    of_equal_count = group.count if is_dealt else None
    kind = (group.apart, group.per_subtree, _counts_cards(group), group.exclusive, group.takes)
    return (frozenset(group.amounts.items()), *kind, rules, joint, of_equal_count)


def _served_by(group: Group) -> object:
    """Return a key that groups share if the same devices may serve them, equally well."""
    return frozenset(group.options.items()), frozenset(group.meets.items())


def _as_one(family: Sequence[Group]) -> Group:
    first, counts_cards = family[0], _counts_cards(family[0])
    if len(family) == 1:
        return first if first.by_card == counts_cards else replace(first, by_card=counts_cards)
    count = sum([group.count for group in family])
    return replace(first, count=count, by_card=counts_cards, stands_for=len(family))

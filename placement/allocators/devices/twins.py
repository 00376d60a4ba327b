"""Groups of one request that want just the same of a host: they are searched for as one, and share what it gets.

Eight groups of a device each would be 2^8 counts of devices, one group of eight is nine. What groups want is compared
by the devices that remain for them, so groups of different words are twins where these devices are the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from placement.allocators.devices.request import Group, Request

Twins = Mapping[str, Sequence[Group]]
"""For the label of each group that is searched for, the groups that it stands for."""


def without_twins(request: Request) -> tuple[Request, Twins]:
    """Return a request with one group for all that may change places, and which these are."""
    joined = {label for joint in request.joint for label in (joint.primary, *joint.secondaries)}
    families: dict[object, list[Group]] = defaultdict(list)
    for group in request.groups:
        has_twins = group.label not in joined and _may_have_twins(group)
        families[_wants(group, request) if has_twins else group.label].append(group)
    groups = tuple([_as_one(family) for family in families.values()])
    labels = {group.label for group in groups}
    within = tuple([replace(rule, groups=tuple([g for g in rule.groups if g in labels])) for rule in request.within])
    twins = {one.label: family for one, family in zip(groups, families.values(), strict=True)}
    return replace(request, groups=groups, within=within), twins


def shared_out(devices: Sequence[str], family: Sequence[Group]) -> dict[str, tuple[str, ...]]:
    """Return for each group of a family its part of the devices that all of them got.

    >>> shared_out(["gpu0", "gpu1", "gpu2"], [Group(label="a", options={}), Group(label="b", options={}, count=2)])
    {'a': ('gpu0',), 'b': ('gpu1', 'gpu2')}
    """
    if len(family) == 1:
        return {family[0].label: tuple(devices)}
    left = iter(devices)
    return {group.label: tuple([next(left) for _one in range(group.count)]) for group in family}


def _may_have_twins(group: Group) -> bool:
    """Tell whether it is enough to say how many devices a group and its twins want together.

    Groups that are apart want different ones in any case; others may share a device, but not with themselves.
    """
    return not group.per_subtree and not group.shares and (group.count == 1 or (group.apart and not group.by_card))


def _wants(group: Group, request: Request) -> object:
    """Return what twins have in common."""
    rules = tuple([rule for rule in request.within if group.label in rule.groups])
    numbers = [tuple(sorted(one.items())) for one in (group.options, group.amounts, group.meets)]
    return (*numbers, group.apart, group.exclusive, rules)


def _as_one(family: Sequence[Group]) -> Group:
    first = family[0]
    if len(family) == 1:
        return first
    return replace(first, count=sum([group.count for group in family]), shares=not first.apart, by_card=False)

"""Identical ties between groups, such as several switches that each need a GPU and a NIC below them.

A tie is a rule that groups are in one place, and that one of their devices is the place itself: the switch, in the
example. Seven ties of three groups would be twenty-one groups whose counts multiply. Identical ties are
interchangeable, so they are searched for as one, whose groups need seven times as many devices, with a whole number of
ties in each place. Afterwards the devices are divided among the ties.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.allocators.devices.request import Device, Group, Host, InOnePlace, Request


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

    def shared_out(self, found: Mapping[str, Sequence[str]], host: Host) -> dict[str, tuple[str, ...]]:
        """Divide the devices found for the first tie's groups among the groups of all ties."""
        at = {device.name: device.path[self.level] for device in host.devices}
        rows: list[dict[str | None, list[str]]] = []
        for label in self.groups[0]:
            row: dict[str | None, list[str]] = defaultdict(list)
            for name in found[label]:
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
    ties = [rule for rule in request.within if _can_be_merged(rule, host, request)]
    if len(ties) < 2:
        return host, request, ()
    found: dict[object, list[InOnePlace]] = defaultdict(list)
    alike = _served_alike(request)
    for rule in ties:
        found[_wants(rule, host, request, alike)].append(rule)
    families = [rules for rules in found.values() if len(rules) > 1]
    if not families:
        return host, request, ()
    levels = [host.levels.index(rule.level) for rules in families for rule in rules[1:]]
    left = _without_levels(host, levels)
    merged = [_identical_ties(rules, left, request, alike) for rules in families]
    return left, _merged(request, families), merged


def _can_be_merged(rule: InOnePlace, host: Host, request: Request) -> bool:
    """Tell whether a rule is a tie whose groups can be counted together.

    One of its groups must consist of nothing but places, so that nothing else has to ensure that the place is taken.
    """
    uncounted = host.levels[len(host.levels) - host.uncounted :]
    if not rule.required or rule.condition is None or rule.level not in uncounted:
        return False
    groups, bit = _groups(rule, request), 1 << rule.condition
    joined = {label for joint in request.joint for label in (joint.primary, *joint.secondaries)}
    return (
        any([all([group.meets.get(name, 0) & bit for name in group.options]) for group in groups])
        and all(
            [not group.per_subtree and (group.count == 1 or (group.apart and not group.by_card)) for group in groups]
        )
        and joined.isdisjoint(rule.groups)
    )


def _served_alike(request: Request) -> dict[str, int]:
    """Number the groups, those that the same devices serve equally well alike.

    How well that is does not matter: a plan is for all hosts that differ in nothing else.
    """
    options = [group.options for group in request.groups]
    return {group.label: options.index(group.options) for group in request.groups}


def _wants(rule: InOnePlace, host: Host, request: Request, alike: Mapping[str, int]) -> object:
    """Return a key that identical ties share."""
    level = host.levels.index(rule.level)
    return (
        tuple([device.path[level] for device in host.devices]),
        tuple(sorted([_wants_of(group, rule, request, alike) for group in _groups(rule, request)])),
    )


def _wants_of(group: Group, rule: InOnePlace, request: Request, alike: Mapping[str, int]) -> tuple[object, ...]:
    """Return what a group of a tie needs, regardless of which tie it belongs to."""
    assert rule.condition is not None
    meets = {name: mask & ~(1 << rule.condition) for name, mask in group.meets.items()}
    others = tuple([n for n, other in enumerate(request.within) if other is not rule and group.label in other.groups])
    numbers = [tuple(sorted(one.items())) for one in (group.amounts, meets)]
    rules = (group.apart, group.takes, group.count, group.by_card, group.exclusive, others)
    return (*numbers, *rules, alike[group.label])


def _groups(rule: InOnePlace, request: Request) -> list[Group]:
    return [group for group in request.groups if group.label in rule.groups]


def _in_order(rule: InOnePlace, request: Request, alike: Mapping[str, int]) -> list[Group]:
    return sorted(_groups(rule, request), key=lambda group: _wants_of(group, rule, request, alike))


def _identical_ties(
    rules: Sequence[InOnePlace], host: Host, request: Request, alike: Mapping[str, int]
) -> IdenticalTies:
    orders = [_in_order(rule, request, alike) for rule in rules]
    labels = [[group.label for group in groups] for groups in orders]
    return IdenticalTies(host.levels.index(rules[0].level), labels, [group.count for group in orders[0]])


def _without_levels(host: Host, levels: Sequence[int]) -> Host:
    """Remove some of the uncounted levels from a host."""

    def left(path: Sequence[str | None]) -> tuple[str | None, ...]:
        return tuple([place for level, place in enumerate(path) if level not in levels])

    names = tuple([name for level, name in enumerate(host.levels) if level not in levels])
    devices = tuple([Device(one.name, left(one.path), one.room, one.card) for one in host.devices])
    return Host(names, devices, host.in_use, host.uncounted - len(levels))


def _merged(request: Request, families: Sequence[Sequence[InOnePlace]]) -> Request:
    times = {label: len(rules) for rules in families for label in rules[0].groups}
    gone = {label for rules in families for rule in rules[1:] for label in rule.groups}
    bits = [bit for bit in range(request.conditions) if bit not in _conditions(families)]
    groups = [_times(group, times.get(group.label, 1), bits) for group in request.groups if group.label not in gone]
    firsts = {rules[0].level: len(rules) for rules in families}
    levels = {rule.level for rules in families for rule in rules[1:]}
    within = []
    for rule in request.within:
        if rule.level in levels:
            continue
        labels = tuple([label for label in rule.groups if label not in gone])
        condition = bits.index(rule.condition) if rule.condition in bits else None
        within.append(replace(rule, groups=labels, condition=condition, stands_for=firsts.get(rule.level, 1)))
    return replace(request, groups=tuple(groups), within=tuple(within), conditions=len(bits))


def _conditions(families: Sequence[Sequence[InOnePlace]]) -> set[int | None]:
    return {rule.condition for rules in families for rule in rules}


def _times(group: Group, times: int, bits: Sequence[int]) -> Group:
    """Return a group that represents this many, renumbering the remaining conditions."""
    meets = {
        name: sum([1 << new for new, old in enumerate(bits) if mask >> old & 1]) for name, mask in group.meets.items()
    }
    return replace(group, count=group.count * times, stands_for=times, meets=meets)

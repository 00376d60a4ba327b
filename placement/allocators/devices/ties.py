"""Groups that are tied to each other, several times over: as many switches, each with a GPU and a NIC below it.

Seven ties of three groups would be twenty-one groups whose counts multiply. Ties that want the same may change places,
so they are searched for as one, whose groups want seven devices each, and in every place that has some of them there
is a whole number of ties. Afterwards each tie gets its own.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.allocators.devices.request import Device, Group, Host, InOnePlace, Request


@dataclass(frozen=True, slots=True)
class LikeTies:
    """Ties that are searched for as the first of them.

    Args:
        level: where a tie is in one place.
        groups: for each tie the labels of its groups, in one order.
        counts: how many devices each of these groups wants.
    """

    level: int
    groups: Sequence[Sequence[str]]
    counts: Sequence[int]

    def shared_out(self, found: Mapping[str, Sequence[str]], host: Host) -> dict[str, tuple[str, ...]]:
        """Return the devices of every group, of those that were found for the groups of the first tie."""
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


def without_like_ties(host: Host, request: Request) -> tuple[Host, Request, Sequence[LikeTies]]:
    """Return a request with one tie for all that want the same, its host, and what they are."""
    found: dict[object, list[InOnePlace]] = defaultdict(list)
    for rule in request.within:
        if _may_be_alike(rule, host, request):
            found[_wants(rule, host, request)].append(rule)
    families = [rules for rules in found.values() if len(rules) > 1]
    if not families:
        return host, request, ()
    levels = [host.levels.index(rule.level) for rules in families for rule in rules[1:]]
    left = _without_levels(host, levels)
    alike = [_like_ties(rules, left, request) for rules in families]
    return left, _merged(request, families), alike


def _may_be_alike(rule: InOnePlace, host: Host, request: Request) -> bool:
    """Tell whether a rule is a tie, with groups that may be counted together.

    One of its groups can only be the place itself: then nothing has to see to it that a group is.
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


def _wants(rule: InOnePlace, host: Host, request: Request) -> object:
    """Return what ties that are alike have in common."""
    level = host.levels.index(rule.level)
    return (
        tuple([device.path[level] for device in host.devices]),
        tuple(sorted([_wants_of(group, rule, request) for group in _groups(rule, request)])),
    )


def _wants_of(group: Group, rule: InOnePlace, request: Request) -> tuple[object, ...]:
    """Return what a group of a tie wants, but that it is of this one."""
    assert rule.condition is not None
    meets = {name: mask & ~(1 << rule.condition) for name, mask in group.meets.items()}
    others = tuple([n for n, other in enumerate(request.within) if other is not rule and group.label in other.groups])
    numbers = [tuple(sorted(one.items())) for one in (group.options, group.amounts, meets)]
    return (*numbers, group.apart, group.takes, group.count, group.by_card, group.exclusive, others)


def _groups(rule: InOnePlace, request: Request) -> list[Group]:
    return [group for group in request.groups if group.label in rule.groups]


def _in_order(rule: InOnePlace, request: Request) -> list[Group]:
    return sorted(_groups(rule, request), key=lambda group: _wants_of(group, rule, request))


def _like_ties(rules: Sequence[InOnePlace], host: Host, request: Request) -> LikeTies:
    orders = [_in_order(rule, request) for rule in rules]
    labels = [[group.label for group in groups] for groups in orders]
    return LikeTies(host.levels.index(rules[0].level), labels, [group.count for group in orders[0]])


def _without_levels(host: Host, levels: Sequence[int]) -> Host:
    """Return a host without some of the levels that do not count."""

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
    """Return a group that stands for so many, with the conditions that are left."""
    meets = {
        name: sum([1 << new for new, old in enumerate(bits) if mask >> old & 1]) for name, mask in group.meets.items()
    }
    return replace(group, count=group.count * times, stands_for=times, meets=meets)

"""The device allocator's input: the devices of one host, a request, and which device may serve which group."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators import natural_key

PlacePath = Sequence[str | None]
"""The place of a device at each level of its host; None where it is in none."""

THE_DEVICE = "device"
"""The level of the devices themselves, for exclusive use."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a host.

    Args:
        name: unique on the host; breaks ties, in natural order.
        path: its place at each level of the host; None where it is in none.
        room: what is left of those resource classes for which groups may compete on it; any other is unlimited.
        card: the device it is a part of, as a NIC's virtual function is; "" if it is a whole device.
    """

    name: str
    path: tuple[str | None, ...]
    room: Mapping[str, float] = field(default_factory=dict)
    card: str = ""

    @property
    def whole(self) -> str:
        """The name of its card, or its own if it is not part of one."""
        return self.card or self.name


@dataclass(frozen=True, slots=True)
class Host:
    """The devices of a host.

    Args:
        levels: the kinds of places (NUMA node, PCIe switch), the most important first; nested, usually in this order.
        in_use: the names of the devices and places that are in use, or contain something that is.
        uncounted: how many of the last levels matter only to rules: touching their places costs nothing.
    """

    levels: tuple[str, ...]
    devices: tuple[Device, ...]
    in_use: frozenset[str] = frozenset()
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A request for interchangeable devices.

    Args:
        label: unique in the request.
        options: device -> misfit, for devices that can serve it; the lowest sum of misfits wins among equals.
        count: the number of distinct devices.
        per_subtree: one for each place that the primary group of its joint allocation uses, but at least ``count``.
        amounts: what it takes of each device, in the classes of ``Device.room``.
        is_isolated: shares no device with another isolated group.
        exclusive: levels at which the place of each device must not be in use by anybody else.
        by_card: whether its devices must be on different cards.
        meets: device -> the request's shared conditions that it meets, as a bit mask.
        takes: whether it takes anything of its devices; places count as touched only then.
        stands_for: how many identical groups it represents in the search; rules apply to each of them.
    """

    label: str
    options: Mapping[str, int]
    count: int = 1
    per_subtree: bool = False
    amounts: Mapping[str, int] = field(default_factory=dict)
    is_isolated: bool = True
    exclusive: tuple[str, ...] = ()
    by_card: bool = False
    meets: Mapping[str, int] = field(default_factory=dict)
    takes: bool = True
    stands_for: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Groups that are allocated together: wherever devices of the primary group are, the secondaries are as well.

    If required, every place of the level with a primary has each secondary, and no other place has any. If preferred,
    as few primaries as possible lack a secondary in their place, and as few secondaries as possible a primary.
    """

    primary: str
    secondaries: tuple[str, ...]
    level: str
    required: bool = True

    @property
    def groups(self) -> tuple[str, ...]:
        """All of them."""
        return self.primary, *self.secondaries


@dataclass(frozen=True, slots=True, kw_only=True)
class InOnePlace:
    """Groups whose devices are all in one place of a level; if only preferred, in as few places as possible.

    Args:
        condition: the shared condition that a device which is itself such a place meets; None if there is none.
        stands_for: how many such rules it represents in the search; each place then serves a whole number of them.
    """

    groups: tuple[str, ...]
    level: str
    required: bool = True
    condition: int | None = None
    stands_for: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to one host; ``conditions`` is the number of conditions that the devices must meet together."""

    groups: tuple[Group, ...]
    joint: tuple[Joint, ...] = ()
    within: tuple[InOnePlace, ...] = ()
    conditions: int = 0

    @property
    def rules(self) -> tuple[Joint | InOnePlace, ...]:
        """All rules about places."""
        return *self.joint, *self.within


def nesting(paths: Collection[PlacePath], levels: int) -> tuple[int, ...] | None:
    """Return the levels from the outside in; None if some places overlap without one enclosing the other.

    >>> nesting([("pcie0", "numa0"), ("pcie1", "numa0"), (None, "numa1")], levels=2)
    (1, 0)
    >>> nesting([("pcie0", "numa0"), ("pcie1", "numa0"), ("pcie1", "numa1")], levels=2)
    """
    order: list[int] = []
    inner = list(range(levels))
    while inner:
        outermost = next((level for level in inner if all([_is_in_one(paths, below, level) for below in inner])), None)
        if outermost is None:
            return None
        order.append(outermost)
        inner.remove(outermost)
    return tuple(order)


def _is_in_one(paths: Collection[PlacePath], inner: int, outer: int) -> bool:
    """Tell whether each place of ``inner`` lies entirely in one place of ``outer``, or entirely in none."""
    pairs = {(path[inner], path[outer]) for path in paths if path[inner] is not None}
    return len(pairs) == len({place for place, _around in pairs})


class DeviceOption(NamedTuple):
    """A device that may serve a group, numbered by group and then by the natural order of names.

    ``turn`` distinguishes repeated uses of a device by one group, from 0.
    """

    number: int
    group: int
    device: Device
    turn: int = 0


def options_of(host: Host, request: Request) -> list[DeviceOption]:
    """Return all options, in order, of devices that may serve as far as exclusive use and required levels go.

    For a group that wants different cards it also leaves out what of a card lies elsewhere than its first device: the
    search compares the devices of a card only where all of them are.
    """
    devices = sorted(host.devices, key=lambda device: natural_key(device.name))
    options: list[DeviceOption] = []
    for index, group in enumerate(request.groups):
        demanded = [rule.level for rule in request.rules if rule.required and group.label in rule.groups]
        is_choosy, place_of_card = bool(demanded or group.exclusive), dict[str, PlacePath]()
        for device in devices:
            if device.name not in group.options or (is_choosy and not _remains(host, demanded, group, device)):
                continue
            if not group.by_card or place_of_card.setdefault(device.whole, device.path) == device.path:
                for turn in range(_turns(group, device)):
                    options.append(DeviceOption(len(options), index, device, turn))
    return options


def _turns(group: Group, device: Device) -> int:
    """Return how often a group can take a device: once, or once for each group represented that may share it."""
    if group.is_isolated or group.stands_for == 1:
        return 1
    rooms = [device.room[name] // amount for name, amount in group.amounts.items() if name in device.room]
    return max(1, int(min([group.stands_for, *rooms])))  # Without room it cannot be taken, but counts as an option.


def _remains(host: Host, demanded: Sequence[str], group: Group, device: Device) -> bool:
    places = dict(zip(host.levels, device.path, strict=True)) | {THE_DEVICE: device.name}
    reserved = {places[level] for level in group.exclusive}
    return None not in {*reserved, *map(places.get, demanded)} and host.in_use.isdisjoint(reserved)

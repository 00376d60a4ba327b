"""Which devices remain for which group after all checks that concern a single device."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, Request
from placement.allocators.natural_order import natural_key


class DeviceOption(NamedTuple):
    """A device that may serve a group. ``number`` follows the order of groups, then the natural order of names.

    ``turn`` distinguishes repeated uses of a device by one group, from 0.
    """

    number: int
    group: int
    device: Device
    turn: int = 0


def options_of(host: Host, request: Request) -> list[DeviceOption]:
    """Return all options, in order.

    Leaves out devices whose place is needed exclusively but in use, and those in no place of a level for which the
    request requires one.
    """
    devices = sorted(host.devices, key=lambda device: natural_key(device.name))
    options: list[DeviceOption] = []
    for index, group in enumerate(request.groups):
        demanded = [host.levels.index(level) for level in _demanded_levels(request, group.label)]
        is_choosy, is_repeated = bool(demanded or group.exclusive), group.turns > 1
        for device in devices:
            if device.name in group.options and not (is_choosy and not _remains(host, demanded, group, device)):
                for turn in range(_times(group, device) if is_repeated else 1):
                    options.append(DeviceOption(len(options), index, device, turn))
    return options


def _times(group: Group, device: Device) -> int:
    """Return how often a group can take a device."""
    rooms = [device.room[name] // amount for name, amount in group.amounts.items() if name in device.room]
    return max(1, int(min([group.turns, *rooms])))  # Without room it cannot be taken, but counts as an option.


def _remains(host: Host, demanded: Sequence[int], group: Group, device: Device) -> bool:
    if any([device.path[level] is None for level in demanded]):
        return False
    if not group.exclusive:
        return True
    places = dict(zip(host.levels, device.path, strict=True)) | {THE_DEVICE: device.name}
    reserved = [places.get(level) for level in group.exclusive]
    return not any([place is None or place in host.in_use for place in reserved])


def _demanded_levels(request: Request, label: str) -> Iterator[str]:
    for joint in request.joint:
        if joint.required and label in (joint.primary, *joint.secondaries):
            yield joint.level
    for within in request.within:
        if within.required and label in within.groups:
            yield within.level

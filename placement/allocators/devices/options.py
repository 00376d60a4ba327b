"""Which devices remain for which group once everything is looked at that concerns one device alone."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, Request
from placement.allocators.natural_order import natural_key


class DeviceOption(NamedTuple):
    """A device that may serve a group. ``number`` follows the groups as given, then the natural order of names.

    ``turn`` tells the times apart that a group takes a device, from 0.
    """

    number: int
    group: int
    device: Device
    turn: int = 0


def options_of(host: Host, request: Request) -> list[DeviceOption]:
    """Return all options, in order.

    Left out are devices whose place is needed exclusively and in use, and those outside all places of a level that the
    request demands something of.
    """
    devices = sorted(host.devices, key=lambda device: natural_key(device.name))
    found = [
        (index, device, turn)
        for index, group in enumerate(request.groups)
        for demanded in ([host.levels.index(level) for level in _demanded_levels(request, group.label)],)
        for device in devices
        if device.name in group.options and _remains(host, demanded, group, device)
        for turn in range(_times(group, device))
    ]
    return [DeviceOption(number, *option) for number, option in enumerate(found)]


def _times(group: Group, device: Device) -> int:
    """Return how often a group can take a device."""
    if group.turns == 1:
        return 1
    rooms = [device.room[name] // amount for name, amount in group.amounts.items() if name in device.room]
    return max(1, int(min([group.turns, *rooms])))  # Without room it is not taken, but could have been.


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

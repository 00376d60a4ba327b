"""Which devices remain for which group after all checks that concern a single device."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, Request
from placement.allocators.natural_order import natural_key


class DeviceOption(NamedTuple):
    """A device that may serve a group. ``number`` follows the order of groups, then the natural order of names.

    ``turn`` distinguishes repeated uses of a device by one group, from 0. Numbers are given out by ``Numbering``.
    """

    number: int
    group: int
    device: Device
    turn: int = 0


class Numbering(NamedTuple):
    """How options are numbered: by group, then by the place of the device in the natural order of names, then by turn.

    Each group has a range of numbers for the same number of devices, whether it has options on all of them or not. So
    if a switch and its devices are like another one of the host, or of another host numbered the same way, the numbers
    of all their options differ by one constant, and costs found for one can be moved to the other (``Costs.moved``).

    Args:
        groups: how many groups there are.
        devices: the size of a group's range: the number of devices, rounded up to a power of 2.
        turns: how often a group may take a device.
    """

    groups: int
    devices: int
    turns: int

    @property
    def size(self) -> int:
        """A number that is greater than those of all options."""
        return self.groups * self.devices * self.turns

    def number(self, group: int, device: int, turn: int) -> int:
        """Return the number of an option."""
        return (group * self.devices + device) * self.turns + turn

    def device_of(self, option: DeviceOption) -> int:
        """Return the place of an option's device in the natural order of names."""
        return option.number // self.turns % self.devices


def numbering_of(host: Host, request: Request) -> Numbering:
    """Return how the options of a request on a host are numbered."""
    devices = 1 << max(0, len(host.devices) - 1).bit_length()
    return Numbering(len(request.groups), devices, max([group.turns for group in request.groups], default=1))


def options_of(host: Host, request: Request) -> list[DeviceOption]:
    """Return all options, in order.

    Leaves out devices whose place is needed exclusively but in use, and those in no place of a level for which the
    request requires one.
    """
    devices = sorted(host.devices, key=lambda device: natural_key(device.name))
    number, found = numbering_of(host, request).number, []
    for index, group in enumerate(request.groups):
        demanded = [host.levels.index(level) for level in _demanded_levels(request, group.label)]
        is_choosy, is_repeated = bool(demanded or group.exclusive), group.turns > 1
        for place, device in enumerate(devices):
            if device.name in group.options and not (is_choosy and not _remains(host, demanded, group, device)):
                turns = range(_times(group, device) if is_repeated else 1)
                found += [DeviceOption(number(index, place, turn), index, device, turn) for turn in turns]
    return found


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

"""Finds some way to give each group its devices, at any cost, where the beam of the search was too narrow to find one.

Groups take devices one after another, the most demanding first; a group whose devices are all taken makes another one
move on (augmenting paths). Where each device serves only one group, this finds a way whenever one exists.
"""

from collections import defaultdict
from collections.abc import Sequence

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.request import Request


def assigned(request: Request, options: Sequence[DeviceOption]) -> list[DeviceOption] | None:
    """Return an option for each device that groups need at least; None if none were found.

    Considers room, and that groups that are apart share no device, but no rules about places.

    >>> from placement.allocators.devices.request import Device, Group
    >>> big, small = Device("big", (), {"VCPU": 4}), Device("small", (), {"VCPU": 2})
    >>> groups = tuple([Group(label=str(n), options={"big": 0, "small": 0}, amounts={"VCPU": n}) for n in (1, 3)])
    >>> some = [DeviceOption(2 * n + m, n, device) for n in (0, 1) for m, device in enumerate((big, small))]
    >>> [(option.group, option.device.name) for option in assigned(Request(groups=groups), some)]
    [(0, 'small'), (1, 'big')]
    """
    taken = _TakenOptions(request, options)
    if not all([taken.serve(index, set()) for index in taken.most_demanding_first()]):
        return None
    return taken.in_order()


class _TakenOptions:
    """Which options are taken so far, device by device, while groups are being served."""

    def __init__(self, request: Request, options: Sequence[DeviceOption]) -> None:
        self._groups = request.groups
        self._options: dict[int, list[DeviceOption]] = defaultdict(list)
        for option in options:
            self._options[option.group].append(option)
        self._on: dict[str, list[DeviceOption]] = defaultdict(list)
        self._touched: set[str | None] = {None}

    def most_demanding_first(self) -> list[int]:
        """Return the index of each group as often as it needs a device, the most demanding first."""
        indices = [index for index, group in enumerate(self._groups) for _one in range(group.count)]
        return sorted(indices, key=self._ease)

    def _ease(self, index: int) -> tuple[int, int]:
        return -sum(self._groups[index].amounts.values()), len(self._options[index])

    def in_order(self) -> list[DeviceOption]:
        """Return the options taken."""
        return sorted([option for on_device in self._on.values() for option in on_device])

    def serve(self, index: int, asked: set[str]) -> bool:
        """Find a device for a group. ``asked`` has the names of devices already on the augmenting path; it grows."""
        free = [option for option in self._options[index] if self._fits(option)]
        if free:
            self._take(min(free, key=self._distance))
            return True
        for option in self._options[index]:
            if option.device.name not in asked:
                asked.add(option.device.name)
                if self._serve_instead(option, asked):
                    return True
        return False

    def _serve_instead(self, option: DeviceOption, asked: set[str]) -> bool:
        """Give a device to a group if one of its holders can move on."""
        on_device = self._on[option.device.name]
        for other in [other for other in on_device if self._fits(option, without=other)]:
            on_device.remove(other)
            on_device.append(option)
            if self.serve(other.group, asked):
                return True
            on_device.remove(option)
            on_device.append(other)
        return False

    def _fits(self, option: DeviceOption, without: DeviceOption | None = None) -> bool:
        """Tell whether a device has room for an option beside its holders, or all of them but one."""
        others = [one for one in self._on[option.device.name] if one is not without]
        if option in others:
            return False
        groups = [self._groups[one.group] for one in (*others, option)]
        if sum([group.apart for group in groups]) > 1:
            return False
        rooms = option.device.room.items()
        return all([sum([group.amounts.get(name, 0) for group in groups]) <= room for name, room in rooms])

    def _distance(self, option: DeviceOption) -> tuple[int, int]:
        """Return a sort key that prefers devices in places that are touched already, then the order of options."""
        return sum([place not in self._touched for place in option.device.path]), option.number

    def _take(self, option: DeviceOption) -> None:
        self._on[option.device.name].append(option)
        self._touched.update(option.device.path)

"""Hosts with devices that are given out whole or in shares, and work for them, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators.entries import InvalidEntry


class FreeDevice(NamedTuple):
    """What is left of a device, in units, and of which kind it is: a GPU model, say."""

    left: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class FreeHost:
    """What is free on a host.

    Args:
        free: by resource class, without the devices.
        devices: its devices, full ones too.
    """

    free: Mapping[str, int]
    devices: tuple[FreeDevice, ...] = ()

    def has_room(self, amounts: Mapping[str, int]) -> bool:
        """Tell whether so much is free, devices aside."""
        return all([self.free.get(name, 0) >= amount for name, amount in amounts.items()])

    def after(self, task: "DeviceTask", chosen: tuple[int, ...]) -> "FreeHost":
        """Return the host with a task on it; ``chosen`` are the numbers of the devices that it takes a share of."""
        free = {name: left - task.amounts.get(name, 0) for name, left in self.free.items()}
        devices = list(self.devices)
        for number in chosen:
            devices[number] = FreeDevice(devices[number].left - task.share, devices[number].kind)
        return FreeHost(free, tuple(devices))


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTask:
    """Work to be placed on one host.

    Args:
        amounts: what it takes, by resource class, without devices.
        devices: of how many different devices it takes a share.
        share: how many units of each.
        kinds: the kinds of device that will do; empty if any will.

    Raises:
        InvalidEntry: devices without a share, or a share without devices.
    """

    amounts: Mapping[str, int]
    devices: int = 0
    share: int = 0
    kinds: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if (self.devices > 0) != (self.share > 0):
            raise InvalidEntry(("share",), "units of each device, or no devices", self.share)

    def can_use(self, device: FreeDevice) -> bool:
        """Tell whether a device has the share, and is of a kind that will do."""
        return device.left >= self.share and (not self.kinds or device.kind in self.kinds)

    def usable(self, host: FreeHost) -> list[int]:
        """Return the numbers of the devices of a host that can be used, if there are enough and room beside them."""
        if not host.has_room(self.amounts):
            return []
        numbers = [number for number, device in enumerate(host.devices) if self.can_use(device)]
        return numbers if len(numbers) >= self.devices else []

    def fits(self, host: FreeHost) -> bool:
        """Tell whether a host has room for the task."""
        return host.has_room(self.amounts) and (not self.devices or bool(self.usable(host)))


@dataclass(frozen=True, slots=True)
class DeviceSupply:
    """What there is in all.

    Args:
        units: the units of all devices, free or not, by kind.
        size: the units of a whole device.
        largest: of each resource class that matters, how much the largest host has: what fullness is measured by.
        most_devices: how many devices the host with the most of them has.
    """

    units: Mapping[str, int]
    size: int = 1000
    largest: Mapping[str, int] = field(default_factory=dict)
    most_devices: int = 8

"""Hosts with devices that are allocated whole or in shares, and tasks for them, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators.entries import InvalidEntry


class FreeDevice(NamedTuple):
    """A device: the units left, and its kind, such as a GPU model."""

    left: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class FreeHost:
    """What is free on a host.

    Args:
        free: resource class -> free amount, devices excluded.
        devices: all its devices, including full ones.
    """

    free: Mapping[str, int]
    devices: tuple[FreeDevice, ...] = ()

    def has_room(self, amounts: Mapping[str, int]) -> bool:
        """Tell whether these amounts are free, devices aside."""
        return all([self.free.get(name, 0) >= amount for name, amount in amounts.items()])

    def after(self, task: "DeviceTask", chosen: tuple[int, ...]) -> "FreeHost":
        """Return the host after placing a task that takes its shares from the devices with these numbers."""
        free = {name: left - task.amounts.get(name, 0) for name, left in self.free.items()}
        devices = list(self.devices)
        for number in chosen:
            devices[number] = FreeDevice(devices[number].left - task.share, devices[number].kind)
        return FreeHost(free, tuple(devices))


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTask:
    """Work to be placed on one host.

    Args:
        amounts: resource class -> amount, devices excluded.
        devices: how many distinct devices it takes a share of.
        share: the units it takes of each.
        kinds: the acceptable kinds of device; empty if any will do.

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
        """Tell whether a device has the share left and is of an acceptable kind."""
        return device.left >= self.share and (not self.kinds or device.kind in self.kinds)

    def usable(self, host: FreeHost) -> list[int]:
        """Return the numbers of the host's devices that the task can use; none if it does not fit."""
        if not host.has_room(self.amounts):
            return []
        numbers = [number for number, device in enumerate(host.devices) if self.can_use(device)]
        return numbers if len(numbers) >= self.devices else []

    def fits(self, host: FreeHost) -> bool:
        """Tell whether a host has room for the task."""
        return host.has_room(self.amounts) and (not self.devices or bool(self.usable(host)))


@dataclass(frozen=True, slots=True)
class DeviceSupply:
    """The total supply.

    Args:
        units: kind -> the units of all devices, free or not.
        size: the units of a whole device.
        largest: resource class -> its amount on the largest host, the yardstick of fullness.
        most_devices: the number of devices of the host that has most.
    """

    units: Mapping[str, int]
    size: int = 1000
    largest: Mapping[str, int] = field(default_factory=dict)
    most_devices: int = 8

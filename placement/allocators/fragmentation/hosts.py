"""Hosts with devices that are allocated whole or in shares, tasks for them, and an operator's settings about both."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from placement.allocators import InvalidEntry, Number, best_match, check_number


class FreeDevice(NamedTuple):
    """A device: the units left, and its kind, such as a GPU model."""

    free: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class FreeHost:
    """What is free on a host: ``free`` by class without devices, and the devices, full ones included."""

    free: Mapping[str, int]
    devices: tuple[FreeDevice, ...] = ()

    def has_room(self, amounts: Mapping[str, int]) -> bool:
        """Tell whether these amounts are free, devices aside."""
        return all([self.free.get(name, 0) >= amount for name, amount in amounts.items()])

    def after(self, task: "DeviceTask", chosen: tuple[int, ...]) -> "FreeHost":
        """Return the host after placing a task that takes its shares from the devices with these numbers."""
        free = {name: amount - task.amounts.get(name, 0) for name, amount in self.free.items()}
        devices = list(self.devices)
        for number in chosen:
            devices[number] = FreeDevice(devices[number].free - task.share, devices[number].kind)
        return FreeHost(free, tuple(devices))


TaskForm = tuple[tuple[tuple[str, int], ...], int, int, frozenset[str]]
"""All that a task is, as a key."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTask:
    """Work for one host: ``share`` units of so many distinct devices of acceptable kinds; of any, if none is named.

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

    @property
    def form(self) -> TaskForm:
        """The same for tasks that ask for the same."""
        return tuple(sorted(self.amounts.items())), self.devices, self.share, self.kinds

    def can_use(self, device: FreeDevice) -> bool:
        """Tell whether a device has the share left and is of an acceptable kind."""
        return device.free >= self.share and (not self.kinds or device.kind in self.kinds)

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
    """The total supply: by kind the units of all devices, free or not, and the units of a whole device.

    ``largest`` (class -> amount) and ``most_devices`` are those of the largest host, the yardstick of fullness.
    """

    units: Mapping[str, int]
    size: int = 1000
    largest: Mapping[str, int] = field(default_factory=dict)
    most_devices: int = 8


_NAME = re.compile("[A-Z0-9_]+")
_FAMILY = re.compile(r"[A-Z0-9_]+\*?")


@dataclass(frozen=True, slots=True)
class ExpectedWork:
    """Expected work of relative frequency ``weight``; InvalidEntry if that is negative or not a number."""

    task: DeviceTask
    weight: Number = 1

    def __post_init__(self) -> None:
        check_number(self.weight, "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentationSettings:
    """How placements are judged by what they do to the devices of hosts.

    Args:
        devices: the resource class of devices. Each provider that has it is one device, allocated in shares or whole.
        size: the units of a whole device.
        kinds: the traits, or families of traits, that distinguish kinds of devices; empty if all are the same.
        beside: the resource classes that work takes from the host besides devices.
        flavors: name -> expected work; empty to learn it from requests and allocations.
        weight: scores range from 0 to 100 times this; 0 disables this part.
        refresh_s: how often to reread the supply and what is learnt, in seconds.

    Raises:
        InvalidEntry: a name or number is invalid, or a flavor asks for more than a device or other classes or kinds.
    """

    devices: str
    size: int = 1
    kinds: tuple[str, ...] = ()
    beside: tuple[str, ...] = ("VCPU", "MEMORY_MB")
    flavors: Mapping[str, ExpectedWork] = field(default_factory=dict)
    weight: Number = 10
    refresh_s: float = 300

    def __post_init__(self) -> None:
        check_number(self.weight, "weight")
        check_number(self.refresh_s, "refresh_s")
        if not _NAME.fullmatch(self.devices):
            raise InvalidEntry(("devices",), "a resource class", self.devices)
        if self.size < 1:
            raise InvalidEntry(("size",), "a whole number from 1 up", self.size)
        for kind in self.kinds:
            if not _FAMILY.fullmatch(kind):
                raise InvalidEntry(("kinds",), "traits, or families such as CUSTOM_GPU_*", kind)
        if any(not _NAME.fullmatch(name) or name == self.devices for name in self.beside):
            raise InvalidEntry(("beside",), "other resource classes than that of devices", list(self.beside))
        for name, flavor in self.flavors.items():
            self._check(flavor.task, ("flavors", name))
        object.__setattr__(self, "flavors", MappingProxyType(dict(self.flavors)))

    def _check(self, task: DeviceTask, path: tuple[str, ...]) -> None:
        if task.share > self.size:
            raise InvalidEntry((*path, "share"), f"at most the size of a device, {self.size}", task.share)
        for name in task.amounts:
            if name not in self.beside:
                raise InvalidEntry((*path, "resources", name), f"one of {', '.join(self.beside)}", name)
        for kind in sorted(task.kinds):
            if best_match(self.kinds, kind) is None:
                raise InvalidEntry((*path, "kinds"), f"traits of {', '.join(self.kinds) or 'kinds'}", kind)

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes that matter, that of devices first."""
        return (self.devices, *self.beside)

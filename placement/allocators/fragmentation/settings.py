"""An operator's settings for fragmentation: which devices count, and what work to preserve them for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from placement.allocators.entries import InvalidEntry, Number, check_number
from placement.allocators.fragmentation.hosts import DeviceTask
from placement.allocators.patterns import best_match

_NAME = re.compile("[A-Z0-9_]+")
_FAMILY = re.compile(r"[A-Z0-9_]+\*?")


@dataclass(frozen=True, slots=True)
class ExpectedWork:
    """A kind of work that is expected.

    Args:
        task: what it takes of one host.
        weight: its frequency relative to the others.

    Raises:
        InvalidEntry: the weight is negative or not a number.
    """

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
        flavors: name -> expected work; empty to learn it from what is allocated.
        weight: scores range from 0 to 100 times this; 0 disables this part.
        refresh_s: how often to reread the supply and what is learnt, in seconds.

    Raises:
        InvalidEntry: a name or number is invalid, or a flavor asks for more than a device or for other classes or
            kinds.
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

"""Hosts with devices that are allocated whole or in shares, work for them, and an operator's settings about both.

What work is expected may be learnt. Allocations do not show which kinds of device would have been acceptable, and a
scheduler may ask many times before it takes anything. So both are counted: allocations say how frequent work of each
size is, and requests which kinds it insists on. What was counted loses half its weight in each half-life.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from placement.allocators import NAME, WILDCARD, InvalidEntry, Number, best_match, check_number


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
        if not NAME.fullmatch(self.devices):
            raise InvalidEntry(("devices",), "a resource class", self.devices)
        if self.size < 1:
            raise InvalidEntry(("size",), "a whole number from 1 up", self.size)
        for kind in self.kinds:
            if not NAME.fullmatch(kind.removesuffix(WILDCARD)):
                raise InvalidEntry(("kinds",), "traits, or families such as CUSTOM_GPU_*", kind)
        if any(not NAME.fullmatch(name) or name == self.devices for name in self.beside):
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


Work = tuple[TaskForm, ...]
"""What one request takes of a host: tasks, the largest share first. Its size is the same without kinds."""

HALF_LIFE_S = 14 * 24 * 3600.0
MOST_FORMS = 1000
"""The most sizes to remember, and the most forms of requests."""

LEAST_WEIGHT = 0.001
DIGITS = 4
ANY_KIND = frozenset[str]()

WorkWeights = defaultdict[Work, float]


def work_of(tasks: Iterable[DeviceTask]) -> Work:
    """Return the form of tasks that ask for something."""
    return tuple([task.form for task in tasks if task.devices or task.amounts])


def size_of(work: Work) -> Work:
    """Return work without the kinds it insists on.

    >>> size_of((((("VCPU", 4),), 1, 500, frozenset({"A"})), ((), 1, 500, frozenset({"B"}))))
    (((('VCPU', 4),), 2, 500, frozenset()),)
    """
    devices: Counter[int] = Counter()
    for _amounts, number, share, _kinds in work:
        devices[share] += number
    amounts = tuple([item for task in work for item in task[0]])
    sizes = [(number, share, ANY_KIND) for share, number in sorted(devices.items(), reverse=True)]
    return tuple([(() if place else amounts, *size) for place, size in enumerate(sizes)])


class LearntMix:
    """Counts of work. Not safe for threads."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._at = since
        self._asked: WorkWeights = defaultdict(float)
        self._allocated: WorkWeights = defaultdict(float)

    @property
    def total(self) -> float:
        """How much was allocated, in allocations of now."""
        return sum(self._allocated.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return not (self._asked or self._allocated)

    def note_asked(self, work: Work) -> None:
        """Count a request that could be served."""
        if work in self._asked or len(self._asked) < MOST_FORMS:
            self._asked[work] += 1

    def note_allocated(self, size: Work) -> None:
        """Count an allocation of this size."""
        if size in self._allocated or len(self._allocated) < MOST_FORMS:
            self._allocated[size] += 1

    def add(self, news: "LearntMix", now: float) -> None:
        """Let what is known age until now, add what is new, and forget what is rare."""
        factor = 0.5 ** (max(0.0, now - self._at) / HALF_LIFE_S)
        self._at = max(now, self._at)
        for old, new in ((self._allocated, news._allocated), (self._asked, news._asked)):
            for work in old:
                old[work] *= factor
            for work, often in new.items():
                old[work] += often
        allocated, requests = self._allocated, self._asked
        self._allocated = _first(allocated, sorted(allocated, key=lambda size: -allocated[size]))
        self._asked = _first(requests, sorted(requests, key=lambda work: (-allocated[size_of(work)], -requests[work])))

    def expected(self, limit: int) -> dict[DeviceTask, float]:
        """Return how often each task was allocated, the most frequent first."""
        requests: dict[Work, dict[Work, float]] = defaultdict(dict)
        for work, often in self._asked.items():
            requests[size_of(work)][work] = often
        weights: dict[TaskForm, float] = defaultdict(float)
        for size, allocated in self._allocated.items():
            works = requests.get(size) or {size: 1.0}
            total = sum(works.values())
            for work, often in works.items():
                for form in work:
                    weights[form] += allocated * often / total
        forms = sorted(weights, key=lambda form: -weights[form])[:limit]
        return {_task(*form): weights[form] for form in forms}

    def document(self) -> dict[str, Any]:
        """Return all of this as JSON."""
        return {
            "since": self.since,
            "at": self._at,
            "asked": _listed(self._asked),
            "allocated": _listed(self._allocated),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "LearntMix":
        """Return what ``document`` returned as JSON."""
        mix = cls(document["since"])
        mix._at = document["at"]
        mix._asked, mix._allocated = _weights(document["asked"]), _weights(document["allocated"])
        return mix


def _first(weights: Mapping[Work, float], works: Sequence[Work]) -> WorkWeights:
    """Return the weights of the first of some works, in this order, without those that are as good as 0."""
    return defaultdict(float, {work: weights[work] for work in works[:MOST_FORMS] if weights[work] >= LEAST_WEIGHT})


def _listed(weights: Mapping[Work, float]) -> list[list[Any]]:
    forms = {
        work: [[dict(amounts), number, share, sorted(kinds)] for amounts, number, share, kinds in work]
        for work in weights
    }
    return [[round(often, DIGITS), *forms[work]] for work, often in weights.items()]


def _weights(listed: Iterable[Sequence[Any]]) -> WorkWeights:
    return defaultdict(float, {work_of([_task(*task) for task in tasks]): often for often, *tasks in listed})


def _task(
    amounts: Mapping[str, int] | Iterable[tuple[str, int]], devices: int, share: int, kinds: Iterable[str]
) -> DeviceTask:
    return DeviceTask(dict(amounts), devices, share, frozenset(kinds))

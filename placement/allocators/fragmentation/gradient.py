"""How much of a host's free devices is useless to expected work, and how a placement changes that.

A set of expected tasks is an integer bit mask. Which tasks fit a host, which of them can use a device, and how many
devices each can use then take a few ANDs and ORs, regardless of the number of tasks.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import getitem, or_

from placement.allocators.fragmentation.hosts import DeviceTask, FreeDevice, FreeHost

_Remains = tuple[tuple[int, ...], tuple[FreeDevice, ...]]
"""The relevant part of a host: what is free of each class, and its devices, sorted."""

KEPT = 1 << 15
"""The cache sizes, for the fragmentation of distinct hosts and the weight of sets: some ten megabytes."""


class Fragmentation:
    """The fragmentation of hosts, in units of devices.

    To a task, all of a host's free devices are useless if it does not fit there; otherwise those with too little left
    or of the wrong kind are. Fragmentation is the mean over expected tasks; tasks without devices waste none.

    Args:
        expected: task -> how often it is expected, in any unit.
    """

    def __init__(self, expected: Mapping[DeviceTask, float]) -> None:
        total = sum(expected.values()) or 1.0
        self._classes = sorted({name for task in expected for name in task.amounts})
        self._tasks = [task for task in expected if task.devices]
        weights = [expected[task] / total for task in self._tasks]
        self._weight_of_devices = sum(weights)
        self._least_room = [_Thresholds([task.amounts.get(name, 0) for task in self._tasks]) for name in self._classes]
        counts = [task.devices for task in self._tasks]
        self._by_count = {count: _set_of([count == other for other in counts]) for count in sorted({*counts})}
        self._weight = lru_cache(KEPT)(_sum_over(weights))
        self._users = lru_cache(KEPT)(self._that_can_use)
        self._of = lru_cache(KEPT)(self._computed)  # Many hosts of a cloud are in the same state.

    def of(self, host: FreeHost) -> float:
        """Return the fragmentation of a host."""
        return self._of((tuple([host.free.get(name, 0) for name in self._classes]), tuple(sorted(host.devices))))

    def _computed(self, remains: _Remains) -> float:
        free, devices = remains
        users = [self._users(device) for device in devices]
        fitting = self._with_enough_of(users)
        for thresholds, left in zip(self._least_room, free, strict=True):
            fitting &= thresholds.met_by(left)
        used = sum([device.left * self._weight(fitting & of) for device, of in zip(devices, users, strict=True)])
        return sum([device.left for device in devices]) * self._weight_of_devices - used

    def _that_can_use(self, device: FreeDevice) -> int:
        return _set_of([task.can_use(device) for task in self._tasks])

    def _with_enough_of(self, users: Sequence[int]) -> int:
        """Return the tasks that can use as many devices as they ask for, given which tasks can use each device."""
        enough = 0
        at_least = [-1] + [0] * max(self._by_count, default=0)  # By number of devices: the tasks that can use as many.
        for of_device in users:
            for number in range(len(at_least) - 1, 0, -1):
                at_least[number] |= at_least[number - 1] & of_device
        for count, tasks in self._by_count.items():
            enough |= tasks & at_least[count]
        return enough


class _Thresholds:
    """Maps what is left of a class to the tasks for which that is enough."""

    def __init__(self, amounts: Sequence[int]) -> None:
        self._amounts = sorted({*amounts})
        tasks = [_set_of([amount == other for other in amounts]) for amount in self._amounts]
        self._met: list[int] = [0, *accumulate(tasks, or_)]

    def met_by(self, left: int) -> int:
        return self._met[bisect_right(self._amounts, left)]


def _set_of(members: Sequence[bool]) -> int:
    return sum([1 << number for number, is_member in enumerate(members) if is_member])


def _sum_over(weights: Sequence[float]) -> Callable[[int], float]:
    """Return a function that sums the weights of a set, looking up eight members at a time."""
    tables = [_sums(weights[first : first + 8]) for first in range(0, len(weights), 8)]
    return lambda members: sum(map(getitem, tables, members.to_bytes(len(tables), "little")))


def _sums(weights: Sequence[float]) -> list[float]:
    """Return the sum of every subset of some weights, indexed by its bit mask."""
    found = [0.0]
    for weight in weights:
        found += [known + weight for known in found]
    return found

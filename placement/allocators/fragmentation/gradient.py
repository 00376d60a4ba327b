"""How much of a host's free devices is useless for expected work, and by how much a placement changes that."""

from collections.abc import Mapping
from functools import cache

from placement.allocators.fragmentation.hosts import DeviceTask, FreeHost

_Remains = tuple[tuple[int, ...], tuple[tuple[int, str], ...]]
"""A host as far as it matters: what is free of each class, and its devices, in any order."""


class Fragmentation:
    """The fragmentation of hosts, in units of devices.

    A task makes nothing of any device of a host that it does not fit on; else of those that have too little left, or
    are of another kind. The fragmentation is the mean of that over expected tasks; those without devices use none.

    Args:
        expected: how often each task is expected, in any unit.
    """

    def __init__(self, expected: Mapping[DeviceTask, float]) -> None:
        total = sum(expected.values()) or 1.0
        self._classes = sorted({name for task in expected for name in task.amounts})
        shapes: dict[tuple[int, int, frozenset[str]], dict[tuple[int, ...], float]] = {}
        for task, weight in expected.items():
            if task.devices:
                amounts = tuple([task.amounts.get(name, 0) for name in self._classes])
                of_shape = shapes.setdefault((task.devices, task.share, task.kinds), {})
                of_shape[amounts] = of_shape.get(amounts, 0.0) + weight / total
        self._shapes = [(*shape, sum(of.values()), list(of.items())) for shape, of in shapes.items()]
        self._of = cache(self._computed)  # Hosts of a cloud are much alike.

    def of(self, host: FreeHost) -> float:
        """Return the fragmentation of a host."""
        free = tuple([host.free.get(name, 0) for name in self._classes])
        return self._of((free, tuple(sorted([(device.left, device.kind) for device in host.devices]))))

    def _computed(self, form: _Remains) -> float:
        free, devices = form
        total = sum([left for left, _kind in devices])
        useless = 0.0
        for count, share, kinds, weight, tasks in self._shapes:
            usable = [left for left, kind in devices if left >= share and (not kinds or kind in kinds)]
            fitting = _weight_of_fitting(tasks, free) if len(usable) >= count else 0.0
            useless += weight * total - fitting * sum(usable)
        return useless


def _weight_of_fitting(tasks: list[tuple[tuple[int, ...], float]], free: tuple[int, ...]) -> float:
    return sum([weight for amounts, weight in tasks if all(map(int.__le__, amounts, free))])

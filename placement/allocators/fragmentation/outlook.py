"""What a placement costs the work that is still expected."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

from placement.allocators.fragmentation.gradient import Fragmentation
from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost
from placement.allocators.fragmentation.offcuts import Offcuts


class CostWeights(NamedTuple):
    """How much each part of the cost counts.

    The defaults were chosen on a production trace of 6,212 GPUs with 23 workloads; half or twice as much of any of them
    changes the share of GPUs that are allocated in the end by about a tenth of a percent.
    """

    gradient: float = 1.0
    offcut: float = 8.0
    scarcity: float = 1.0
    fit: float = 0.05


class Outlook:
    """Expected work, and what it makes of hosts.

    Args:
        expected: how often each task is expected, in any unit.
        supply: what there is in all.
        weights: how much each part of the cost counts.
    """

    def __init__(
        self, expected: Mapping[DeviceTask, float], supply: DeviceSupply, weights: CostWeights | None = None
    ) -> None:
        self._supply = supply
        self._weights = weights or CostWeights()
        self._fragmentation = Fragmentation(expected)
        shares: dict[int, float] = defaultdict(float)
        for task, weight in expected.items():
            shares[task.share] += weight * task.devices
        self._offcuts = Offcuts(shares, size=supply.size)
        self._scarcity = scarcity(expected, supply.units)

    def useless(self, host: FreeHost) -> float:
        """Return how much of a host's free devices is useless for the expected work on average, in whole devices."""
        return self._fragmentation.of(host) / self._supply.size

    def cost(self, host: FreeHost, task: DeviceTask, device: FreeDevice | None = None) -> float:
        """Return what it costs to place a task on a host, in whole devices; negative where that tidies up.

        Args:
            host: a host that the task fits on.
            task: the task.
            device: the device it takes its share of; by default the best ones.
        """
        chosen = self.best_devices(host, task) if device is None else (host.devices.index(device),)
        return self._cost(host, task, chosen)

    def best_device(self, host: FreeHost, task: DeviceTask) -> int:
        """Return the number of the device that a task with one device had best take."""
        return self.best_devices(host, task)[0]

    def best_devices(self, host: FreeHost, task: DeviceTask) -> tuple[int, ...]:
        """Return the numbers of the devices that a task had best take; it fits on the host."""
        usable = task.usable(host)
        # Of devices that are alike any will do, and of those that cost the same the fullest.
        sets = combinations(usable, task.devices)
        some = {tuple(sorted([host.devices[number] for number in chosen])): chosen for chosen in sets}
        return min(some.items(), key=lambda one: (self._cost(host, task, one[1]), one[0]))[1]

    def _cost(self, host: FreeHost, task: DeviceTask, chosen: tuple[int, ...]) -> float:
        weights, size = self._weights, self._supply.size
        after = host.after(task, chosen)
        taken = [host.devices[number] for number in chosen]
        gradient = self.useless(after) - self.useless(host)
        offcut = sum([self._offcuts.lost(device.left, task.share) for device in taken])
        scarce = sum([self._scarcity.get(device.kind, 0.0) for device in taken]) * task.share / size
        return (
            weights.gradient * gradient
            + weights.offcut * offcut
            + weights.scarcity * scarce
            + weights.fit * self._room(after)
        )

    def _room(self, host: FreeHost) -> float:
        """Return how empty a host is beside the largest one, from 0 to 1."""
        largest = self._supply.largest
        parts = [host.free.get(name, 0) / most for name, most in largest.items() if most]
        parts.append(sum([device.left for device in host.devices]) / (self._supply.size * self._supply.most_devices))
        return sum(parts) / len(parts)


def scarcity(expected: Mapping[DeviceTask, float], units: Mapping[str, int]) -> dict[str, float]:
    """Return for each kind of device how much of it is asked for by work that insists on it, if all were to be filled.

    Work that will do with some kinds counts for each of them by their part in the supply.

    >>> any_, a100 = DeviceTask({}, devices=1, share=10), DeviceTask({}, devices=1, share=10, kinds=frozenset({"A100"}))
    >>> scarcity({any_: 3, a100: 1}, {"A100": 100, "T4": 100})
    {'A100': 0.5, 'T4': 0.0}
    """
    asked = {task: weight * task.devices * task.share for task, weight in expected.items()}
    total = sum(asked.values()) or 1.0
    found = dict.fromkeys(units, 0.0)
    for task, much in asked.items():
        among = [kind for kind in task.kinds if units.get(kind)]
        supply = sum([units[kind] for kind in among])
        for kind in among:
            found[kind] += much / total * sum(units.values()) / supply
    return found

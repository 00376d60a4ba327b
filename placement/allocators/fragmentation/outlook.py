"""What a placement costs the work that is still expected."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import exp
from typing import NamedTuple

from placement.allocators.fragmentation.gradient import Fragmentation
from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost
from placement.allocators.fragmentation.offcuts import Offcuts

MOST_SETS = 256
"""So many sets of devices of a host are compared, those of the fullest first; hosts with eight have fewer."""

DIGITS = 9
"""Costs that differ by less than a billionth of a device are equal: so much the order of adding them up changes."""


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
        return self.cost_on(host, task, chosen)

    def best_device(self, host: FreeHost, task: DeviceTask) -> int:
        """Return the number of the device that a task with one device had best take."""
        return self.best_devices(host, task)[0]

    def best_devices(self, host: FreeHost, task: DeviceTask) -> tuple[int, ...]:
        """Return the numbers of the devices that a task had best take; it fits on the host.

        Of devices that are alike the first ones; of sets that cost the same the one of the fullest.
        """
        alike: dict[FreeDevice, list[int]] = defaultdict(list)
        for number in task.usable(host):
            alike[host.devices[number]].append(number)
        sets = list(islice(_sets([numbers for _device, numbers in sorted(alike.items())], task.devices), MOST_SETS))
        if len(sets) == 1:
            return sets[0]
        return min(sets, key=lambda chosen: self.cost_on(host, task, chosen))

    def cost_of_all(self, host: FreeHost, tasks: Sequence[DeviceTask]) -> float | None:
        """Return what it costs to place tasks on a host, one after the other; None if they do not fit that way."""
        cost = 0.0
        for task in tasks:
            if not task.fits(host):
                return None
            chosen = self.best_devices(host, task)
            cost += self.cost_on(host, task, chosen)
            host = host.after(task, chosen)
        return round(cost, DIGITS)

    def in_order(self, host: FreeHost, task: DeviceTask) -> list[int]:
        """Return the numbers of the devices that a task can use: the best ones, then by what each would cost alone."""
        if not task.devices or not task.fits(host):
            return []
        best = self.best_devices(host, task)
        one = replace(task, devices=1)
        others = [number for number in task.usable(host) if number not in best]
        return [*sorted(best), *sorted(others, key=lambda number: self.cost_on(host, one, (number,)))]

    def cost_on(self, host: FreeHost, task: DeviceTask, chosen: tuple[int, ...]) -> float:
        """Return what it costs if a task takes its shares of the devices with these numbers."""
        weights, size = self._weights, self._supply.size
        after = host.after(task, chosen)
        taken = [host.devices[number] for number in chosen]
        gradient = self.useless(after) - self.useless(host)
        offcut = sum([self._offcuts.lost(device.left, task.share) for device in taken])
        scarce = sum([self._scarcity.get(device.kind, 0.0) for device in taken]) * task.share / size
        cost = (
            weights.gradient * gradient
            + weights.offcut * offcut
            + weights.scarcity * scarce
            + weights.fit * self._room(after)
        )
        return round(cost, DIGITS)

    def _room(self, host: FreeHost) -> float:
        """Return how empty a host is beside the largest one, from 0 to 1."""
        largest = self._supply.largest
        parts = [host.free.get(name, 0) / most for name, most in largest.items() if most]
        parts.append(sum([device.left for device in host.devices]) / (self._supply.size * self._supply.most_devices))
        return sum(parts) / len(parts)


def tidiness(cost: float | None) -> float:
    """Return a cost as a score from 0 to 100: 50 changes nothing, more tidies up; 0 if the task does not fit.

    >>> [round(tidiness(cost), 1) for cost in (0, -1, 1, 4, None)]
    [50.0, 73.1, 26.9, 1.8, 0.0]
    """
    return 0.0 if cost is None else 100 / (1 + exp(cost))


def _sets(alike: Sequence[Sequence[int]], number: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of so many numbers, one of all that differ only in which of those that are alike they have.

    >>> list(_sets([[0, 1], [2]], 2))
    [(0, 1), (0, 2)]
    """
    if not number:
        yield ()
        return
    for place, numbers in enumerate(alike):
        for count in range(min(len(numbers), number), 0, -1):
            for others in _sets(alike[place + 1 :], number - count):
                yield (*numbers[:count], *others)


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

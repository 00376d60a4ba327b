"""What a placement costs the work that is still expected."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import exp
from typing import NamedTuple

from placement.allocators.fragmentation.gradient import Fragmentation, Offcuts
from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost

MAX_SETS = 256
"""How many sets of a host's devices to compare, the fullest devices first; hosts with eight devices have fewer."""

HIGHEST_COST = 700.0
"""No exponential overflows, and the score is as good as 0."""

DIGITS = 9
"""The decimal places of a cost; differences below a billionth of a device are rounding errors of summation order."""


class CostWeights(NamedTuple):
    """The weight of each part of the cost, tuned on a production trace of 6,212 GPUs with 23 workloads.

    Halving or doubling any of them changes the fraction of GPUs that end up allocated by about a tenth of a percent.
    """

    gradient: float = 1.0
    offcut: float = 8.0
    scarcity: float = 1.0
    fit: float = 0.05


class Outlook:
    """Expected work, as task -> how often in any unit, and the costs of placements that follow from it."""

    def __init__(
        self, expected: Mapping[DeviceTask, float], supply: DeviceSupply, weights: CostWeights | None = None
    ) -> None:
        self.supply = supply
        """The devices that there are in all."""
        self._weights = weights or CostWeights()
        self._fragmentation = Fragmentation(expected)
        shares: dict[int, float] = defaultdict(float)
        for task, weight in expected.items():
            shares[task.share] += weight * task.devices
        self._offcuts = Offcuts(shares, size=supply.size)
        self._scarcity = scarcity(expected, supply.units)

    def useless(self, host: FreeHost) -> float:
        """Return how much of a host's free devices the expected work cannot use on average, in whole devices."""
        return self._fragmentation.of_host(host) / self.supply.size

    def cost(self, host: FreeHost, task: DeviceTask, device: FreeDevice | None = None) -> float:
        """Return the cost of placing a task on a host, on this device or on the best; negative if that defragments."""
        chosen = self.best_devices(host, task) if device is None else (host.devices.index(device),)
        return self.cost_on(host, task, chosen)

    def best_devices(self, host: FreeHost, task: DeviceTask) -> tuple[int, ...]:
        """Return the numbers of the best devices for a task that fits, among equals the fullest and first."""
        alike: dict[FreeDevice, list[int]] = defaultdict(list)
        for number in task.usable(host):
            alike[host.devices[number]].append(number)
        sets = list(islice(_sets([numbers for _device, numbers in sorted(alike.items())], task.devices), MAX_SETS))
        if len(sets) == 1:
            return sets[0]
        return min(sets, key=lambda chosen: self.cost_on(host, task, chosen))

    def cost_of_all(self, host: FreeHost, tasks: Sequence[DeviceTask]) -> float | None:
        """Return the cost of placing tasks on a host one after another; None if they do not fit that way."""
        cost = 0.0
        for task in tasks:
            if not task.fits(host):
                return None
            chosen = self.best_devices(host, task)
            cost += self.cost_on(host, task, chosen)
            host = host.after(task, chosen)
        return round(cost, DIGITS)

    def in_order(self, host: FreeHost, task: DeviceTask) -> list[int]:
        """Return the numbers of the devices that a task can use: the best ones, then others by their cost alone."""
        if not task.devices or not task.fits(host):
            return []
        best = self.best_devices(host, task)
        single = replace(task, devices=1)
        alternatives = [number for number in task.usable(host) if number not in best]
        return [*sorted(best), *sorted(alternatives, key=lambda number: self.cost_on(host, single, (number,)))]

    def cost_on(self, host: FreeHost, task: DeviceTask, chosen: tuple[int, ...]) -> float:
        """Return the cost if a task takes its shares from the devices with these numbers."""
        weights, size = self._weights, self.supply.size
        after = host.after(task, chosen)
        taken = [host.devices[number] for number in chosen]
        gradient = self.useless(after) - self.useless(host)
        offcut = sum([self._offcuts.lost(device.free, task.share) for device in taken])
        scarce = sum([self._scarcity.get(device.kind, 0.0) for device in taken]) * task.share / size
        parts = gradient, offcut, scarce, self._room(after)
        return round(sum([weight * part for weight, part in zip(weights, parts, strict=True)]), DIGITS)

    def _room(self, host: FreeHost) -> float:
        """Return how empty a host is compared to the largest one, from 0 to 1."""
        parts = [host.free.get(name, 0) / most for name, most in self.supply.largest.items() if most]
        parts.append(sum([device.free for device in host.devices]) / (self.supply.size * self.supply.most_devices))
        return sum(parts) / len(parts)


def tidiness(cost: float | None) -> float:
    """Convert a cost to a score from 0 to 100: 50 is neutral, higher reduces fragmentation; 0 if the task does not fit.

    >>> [round(tidiness(cost), 1) for cost in (0, -1, 1, 4, 10_000, None)]
    [50.0, 73.1, 26.9, 1.8, 0.0, 0.0]
    """
    # A host that is far larger than all hosts at the last refresh costs more than that.
    return 0.0 if cost is None else 100 / (1 + exp(min(cost, HIGHEST_COST)))


def _sets(alike: Sequence[Sequence[int]], number: int) -> Iterator[tuple[int, ...]]:
    """Yield all sets of this size that differ in more than the choice among interchangeable numbers.

    >>> list(_sets([[0, 1], [2]], 2))
    [(0, 1), (0, 2)]
    """
    if not number:
        yield ()
        return
    for place, numbers in enumerate(alike):
        for count in range(min(len(numbers), number), 0, -1):
            for further in _sets(alike[place + 1 :], number - count):
                yield (*numbers[:count], *further)


def scarcity(expected: Mapping[DeviceTask, float], units: Mapping[str, int]) -> dict[str, float]:
    """Return for each kind of device how much work insists on it, relative to its supply if all devices were in use.

    Work that accepts several kinds counts for each of them in proportion to their supply.

    >>> any_, a100 = DeviceTask({}, devices=1, share=10), DeviceTask({}, devices=1, share=10, kinds=frozenset({"A100"}))
    >>> scarcity({any_: 3, a100: 1}, {"A100": 100, "T4": 100})
    {'A100': 0.5, 'T4': 0.0}
    """
    demand = {task: weight * task.devices * task.share for task, weight in expected.items()}
    total = sum(demand.values()) or 1.0
    ratios = dict.fromkeys(units, 0.0)
    for task, much in demand.items():
        among = [kind for kind in task.kinds if units.get(kind)]
        supply = sum([units[kind] for kind in among])
        for kind in among:
            ratios[kind] += much / total * sum(units.values()) / supply
    return ratios

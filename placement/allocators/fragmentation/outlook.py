"""What a placement costs the work that is still expected: how much of a host's devices that can use, and how well.

A set of expected tasks is an integer bit mask, so that which tasks fit a host, and how many devices each can use there,
takes a few ANDs and ORs.

Devices are cut into shares as steel bars are cut to lengths. Given a price for each share, a remainder is worth the
most valuable set of shares that fits into it. The prices at which optimal cuts lose nothing are the dual prices of the
cutting-stock problem (Gilmore and Gomory 1961). They are approximated by multiplicative weights (Plotkin, Shmoys and
Tardos 1995): cut the most valuable set over and over, and each time lower the prices of what was cut, the more so the
less it is in demand.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import accumulate, islice
from math import exp, gcd
from operator import or_
from typing import NamedTuple

from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost

KEPT = 1 << 15
"""The cache sizes: some ten megabytes."""


class Fragmentation:
    """The fragmentation of hosts, in units of devices; ``expected`` has how often each task is expected, in any unit.

    To a task, all of a host's free devices are useless if it does not fit there; otherwise those with too little left
    or of the wrong kind are. Fragmentation is the mean over expected tasks; tasks without devices waste none.
    """

    def __init__(self, expected: Mapping[DeviceTask, float]) -> None:
        total = sum(expected.values()) or 1.0
        self._classes = sorted({name for task in expected for name in task.amounts})
        self._tasks = [task for task in expected if task.devices]
        weighted = [(1 << number, expected[task] / total) for number, task in enumerate(self._tasks)]
        self._weight_of_devices = sum([weight for _bit, weight in weighted])
        self._least_room = []
        """By class, the amounts asked, ascending, and the tasks for which none of them, the first, two, ... suffice."""
        for name in self._classes:
            amounts = [task.amounts.get(name, 0) for task in self._tasks]
            steps = sorted({*amounts})
            sets = [_set_of([amount == step for amount in amounts]) for step in steps]
            self._least_room.append((steps, [0, *accumulate(sets, or_)]))
        counts = [task.devices for task in self._tasks]
        self._by_count = {count: _set_of([count == task_count for task_count in counts]) for count in sorted({*counts})}
        self._weight = lru_cache(KEPT)(lambda members: sum([w for bit, w in weighted if members & bit]))
        self._users = lru_cache(KEPT)(lambda device: _set_of([task.can_use(device) for task in self._tasks]))
        self._of_remains = lru_cache(KEPT)(self._computed)  # Many hosts of a cloud are in the same state.

    def of_host(self, host: FreeHost) -> float:
        """Return the fragmentation of a host."""
        return self._of_remains(tuple([host.free.get(name, 0) for name in self._classes]), tuple(sorted(host.devices)))

    def _computed(self, free: tuple[int, ...], devices: tuple[FreeDevice, ...]) -> float:
        users = [self._users(device) for device in devices]
        at_least = [-1] + [0] * max(self._by_count, default=0)  # By number of devices: the tasks that can use as many.
        for of_device in users:
            for number in range(len(at_least) - 1, 0, -1):
                at_least[number] |= at_least[number - 1] & of_device
        fitting = reduce(or_, [tasks & at_least[count] for count, tasks in self._by_count.items()], 0)
        for (steps, enough_for), amount in zip(self._least_room, free, strict=True):
            fitting &= enough_for[bisect_right(steps, amount)]
        used = sum([device.free * self._weight(fitting & tasks) for device, tasks in zip(devices, users, strict=True)])
        return sum([device.free for device in devices]) * self._weight_of_devices - used


def _set_of(members: Sequence[bool]) -> int:
    return sum([1 << number for number, is_member in enumerate(members) if is_member])


ROUNDS = 400
"""The number of cuts. Four times as many place no more work on production traces."""

RATE = 0.1
"""The largest fall of a price in one round, as an exponent."""


class Offcuts:
    """The worth of remainders, given the demand for shares: units -> how often; larger ones than a device are ignored.

    ``size`` is the units of a whole device, which is worth 1.

    >>> [round(Offcuts({600: 1, 400: 1}, size=1000).worth(remainder), 1) for remainder in (300, 400, 600, 1000)]
    [0.0, 0.4, 0.6, 1.0]
    """

    def __init__(self, demand: Mapping[int, float], *, size: int) -> None:
        weights = {share: weight for share, weight in demand.items() if 0 < share <= size and weight > 0}
        self._unit = gcd(size, *weights)
        shares = [share // self._unit for share in weights]
        prices = _prices(shares, list(weights.values()), size // self._unit)
        worth, _last = _dearest(shares, prices, size // self._unit)
        whole = worth[-1] or 1.0
        self._worth = [value / whole for value in worth]

    def worth(self, remainder: int) -> float:
        """Return the worth of a remainder, in whole devices."""
        return self._worth[min(remainder // self._unit, len(self._worth) - 1)]

    def lost(self, remainder: int, share: int) -> float:
        """Return the worth destroyed when a share is taken from a remainder, besides the share's own."""
        return self.worth(remainder) - self.worth(remainder - share) - self.worth(share)


def _prices(shares: Sequence[int], weights: Sequence[float], size: int) -> list[float]:
    """Return the price of each share, up to a common factor. O(rounds x size x shares)."""
    total = sum(weights)
    prices = [share / size for share in shares]
    sums = [0.0] * len(shares)
    for _round in range(ROUNDS if shares else 0):
        worth, last = _dearest(shares, prices, size)
        sums = [so_far + price / worth[size] for so_far, price in zip(sums, prices, strict=True)]
        cut, room = [0] * len(shares), size
        while room > 0:
            if last[room] >= 0:
                cut[last[room]] += 1
            room -= shares[last[room]] if last[room] >= 0 else 1
        over = [number * total / weight for number, weight in zip(cut, weights, strict=True)]
        highest = max(over)
        prices = [price * exp(-RATE * much / highest) for price, much in zip(prices, over, strict=True)]
    return sums


def _dearest(shares: Sequence[int], prices: Sequence[float], size: int) -> tuple[list[float], list[int]]:
    """Solve the knapsack for each size up to ``size``: the best worth, and the last share in it or -1."""
    worth, last = [0.0], [-1]
    for room in range(1, size + 1):
        best, ends_with = worth[room - 1], -1
        for number, share in enumerate(shares):
            if share <= room and worth[room - share] + prices[number] > best:
                best, ends_with = worth[room - share] + prices[number], number
        worth.append(best)
        last.append(ends_with)
    return worth, last


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
    """Expected work, as task -> how often in any unit, and the costs of placements that follow from it.

    >>> half, whole = DeviceTask({"VCPU": 4}, devices=1, share=500), DeviceTask({"VCPU": 8}, devices=1, share=1000)
    >>> outlook = Outlook({half: 1, whole: 1}, DeviceSupply({"": 4000}, size=1000, largest={"VCPU": 32}))
    >>> begun = FreeHost({"VCPU": 16}, (FreeDevice(500), FreeDevice(1000)))
    >>> [round(outlook.cost(begun, half, (number,)), 2) for number in (0, 1)], outlook.best_devices(begun, half)
    ([-0.24, 0.64], (0,))
    """

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

    def best_devices(self, host: FreeHost, task: DeviceTask) -> tuple[int, ...]:
        """Return the numbers of the best devices for a task that fits, among equals the fullest and first."""
        alike: dict[FreeDevice, list[int]] = defaultdict(list)
        for number in task.usable(host):
            alike[host.devices[number]].append(number)
        sets = list(islice(_sets([numbers for _device, numbers in sorted(alike.items())], task.devices), MAX_SETS))
        if len(sets) == 1:
            return sets[0]
        return min(sets, key=lambda chosen: self.cost(host, task, chosen))

    def cost_of_all(self, host: FreeHost, tasks: Sequence[DeviceTask]) -> float | None:
        """Return the cost of placing tasks on a host one after another; None if they do not fit that way."""
        cost = 0.0
        for task in tasks:
            if not task.fits(host):
                return None
            chosen = self.best_devices(host, task)
            cost += self.cost(host, task, chosen)
            host = host.after(task, chosen)
        return round(cost, DIGITS)

    def in_order(self, host: FreeHost, task: DeviceTask) -> list[int]:
        """Return the numbers of the devices that a task can use: the best ones, then others by their cost alone."""
        if not task.devices or not task.fits(host):
            return []
        best = self.best_devices(host, task)
        single = replace(task, devices=1)
        alternatives = [number for number in task.usable(host) if number not in best]
        return [*sorted(best), *sorted(alternatives, key=lambda number: self.cost(host, single, (number,)))]

    def cost(self, host: FreeHost, task: DeviceTask, chosen: tuple[int, ...] | None = None) -> float:
        """Return the cost of a task on these devices, by number, or on the best; negative if that defragments."""
        chosen = self.best_devices(host, task) if chosen is None else chosen
        weights, size = self._weights, self.supply.size
        after = host.after(task, chosen)
        taken = [host.devices[number] for number in chosen]
        gradient = self.useless(after) - self.useless(host)
        offcut = sum([self._offcuts.lost(device.free, task.share) for device in taken])
        scarce = sum([self._scarcity.get(device.kind, 0.0) for device in taken]) * task.share / size
        # How empty the host then is compared to the largest one, from 0 to 1.
        free = [after.free.get(name, 0) / largest for name, largest in self.supply.largest.items() if largest]
        free.append(sum([device.free for device in after.devices]) / (size * self.supply.most_devices))
        parts = gradient, offcut, scarce, sum(free) / len(free)
        return round(sum([weight * part for weight, part in zip(weights, parts, strict=True)]), DIGITS)


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

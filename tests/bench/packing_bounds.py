"""Upper bounds for allocating a cluster's GPUs, even knowing all tasks in advance: a linear programme.

Tasks may be cut into pieces and spread over hosts of a kind, whose CPUs, memory and GPUs are pooled; but a GPU is cut
into shares of the sizes that whole tasks ask for, as in the cutting-stock problem (patterns are generated as they pay:
Gilmore and Gomory 1961). So no placement can allocate more. Demand is the mean of the arrivals over the seeds: the
bound is concave in it, so it also bounds the mean over the seeds. Solved by HiGHS, which SciPy includes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy
from scipy.optimize import linprog
from scipy.sparse import coo_array

from placement.allocators.fragmentation.hosts import DeviceTask, FreeHost
from placement.cli.simulation.traces import SIZE, Trace

Pattern = tuple[tuple[int, int], ...]
"""How one GPU is cut: (share, how many of it)."""

TOLERANCE = 1e-6


def bound(trace: Trace, seeds: Sequence[int], percent: int = 100) -> float:
    """Return the most that can be allocated when tasks for some percent have arrived, both in percent of all GPUs."""
    programme = _Programme(trace, _mean_demand(trace, seeds, percent))
    while True:
        value, better = programme.solved()
        if not better:
            return 100 * value / sum(trace.supply.units.values())
        programme.patterns += better


def _mean_demand(trace: Trace, seeds: Sequence[int], percent: int) -> Mapping[DeviceTask, float]:
    units = sum(trace.supply.units.values())
    demand: Counter[DeviceTask] = Counter()
    for seed in seeds:
        arrived = 0
        for task in trace.arrivals(seed, percent=130):
            demand[task] += 1
            arrived += task.devices * task.share
            if arrived * 100 >= units * percent:
                break
    return {task: number / len(seeds) for task, number in demand.items() if task.devices}


class _Programme:
    def __init__(self, trace: Trace, demand: Mapping[DeviceTask, float]) -> None:
        self._groups: list[tuple[FreeHost, int]] = [
            (host, number) for host, number in _alike(trace.hosts) if host.devices
        ]
        self._demand = demand
        self._tasks = list(demand)
        self._shares = sorted({task.share for task in demand})
        self.patterns: list[Pattern] = [((share, SIZE // share),) for share in self._shares]

    def solved(self) -> tuple[float, list[Pattern]]:
        """Return the optimum for the known patterns, and patterns that would raise it."""
        rows, limits = _Rows(), []
        pairs = [(t, g) for t, task in enumerate(self._tasks) for g, (h, _n) in enumerate(self._groups) if task.fits(h)]
        gain = [-float(self._tasks[t].devices * self._tasks[t].share) for t, _g in pairs]
        cuts = [(pattern, g) for g in range(len(self._groups)) for pattern in self.patterns]
        for t, task in enumerate(self._tasks):
            rows.add([(column, 1.0) for column, (other, _g) in enumerate(pairs) if other == t])
            limits.append(self._demand[task])
        for g, (host, number) in enumerate(self._groups):
            mine = [(column, self._tasks[t]) for column, (t, other) in enumerate(pairs) if other == g]
            for name, amount in host.free.items():
                rows.add([(column, float(task.amounts.get(name, 0))) for column, task in mine])
                limits.append(float(amount * number))
        first_of_cuts = rows.height
        of_group = {
            g: [len(pairs) + i for i, (_p, other) in enumerate(cuts) if other == g] for g in range(len(self._groups))
        }
        for g, (host, number) in enumerate(self._groups):
            rows.add([(column, 1.0) for column in of_group[g]])
            limits.append(float(number * len(host.devices)))
            for share in self._shares:
                taken = [
                    (c, float(self._tasks[t].devices))
                    for c, (t, other) in enumerate(pairs)
                    if other == g and self._tasks[t].share == share
                ]
                given = [(c, -float(dict(cuts[c - len(pairs)][0]).get(share, 0))) for c in of_group[g]]
                rows.add(taken + given)
                limits.append(0.0)
        solution = linprog(
            gain + [0.0] * len(cuts), A_ub=rows.matrix(len(pairs) + len(cuts)), b_ub=limits, method="highs"
        )
        prices = -solution.ineqlin.marginals
        better: dict[Pattern, None] = {}
        width = 1 + len(self._shares)
        for g in range(len(self._groups)):
            of_device, *of_shares = prices[first_of_cuts + g * width : first_of_cuts + (g + 1) * width]
            worth, pattern = _dearest(dict(zip(self._shares, of_shares, strict=True)))
            if worth > of_device + TOLERANCE * SIZE:
                better[pattern] = None
        return -solution.fun, [pattern for pattern in better if pattern not in self.patterns]


class _Rows:
    """A sparse matrix, row by row."""

    def __init__(self) -> None:
        self.height = 0
        self._entries: list[tuple[float, int, int]] = []

    def add(self, entries: Iterable[tuple[int, float]]) -> None:
        self._entries += [(value, self.height, column) for column, value in entries if value]
        self.height += 1

    def matrix(self, width: int) -> coo_array:
        values, rows, columns = zip(*self._entries, strict=True)
        return coo_array((values, (rows, columns)), shape=(self.height, width)).tocsr()


def _alike(hosts: Iterable[FreeHost]) -> list[tuple[FreeHost, int]]:
    forms = Counter((tuple(sorted(host.free.items())), host.devices) for host in hosts)
    return [(FreeHost(dict(free), devices), number) for (free, devices), number in forms.items()]


def _dearest(prices: Mapping[int, float]) -> tuple[float, Pattern]:
    """Return the most valuable set of shares that one device can be cut into."""
    worth, last = numpy.zeros(SIZE + 1), [0] * (SIZE + 1)
    for room in range(1, SIZE + 1):
        worth[room] = worth[room - 1]
        for share, price in prices.items():
            if share <= room and worth[room - share] + price > worth[room] + TOLERANCE:
                worth[room], last[room] = worth[room - share] + price, share
    cut: Counter[int] = Counter()
    room = SIZE
    while room:
        cut[last[room]] += 1 if last[room] else 0
        room -= last[room] or 1
    return float(worth[SIZE]), tuple(sorted((share, number) for share, number in cut.items() if share))

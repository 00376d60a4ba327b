"""Packing a trace's tasks onto hosts, each where it costs least: until the cluster is full, or as tasks come and go.

Only changed hosts are judged again. The protocol is that of the published results: "Beware of Fragmentation" (Weng et
al., USENIX ATC 2023).
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from placement.allocators.fragmentation.hosts import DeviceTask, FreeDevice, FreeHost
from placement.allocators.fragmentation.outlook import CostWeights, Outlook
from placement.cli.simulation.traces import SIZE, Trace

TaskPlace = tuple[int, tuple[int, ...]]
"""The number of a host, and the numbers of its devices of which a task holds a share."""

_JudgedHost = tuple[float, int, int]
"""A task's cost on a host, the host's number, and how many changes it had had when judged."""


class FillingHosts:
    """Hosts on which tasks are placed one after another."""

    def __init__(self, hosts: Sequence[FreeHost], outlook: Outlook) -> None:
        self.hosts = list(hosts)
        self._outlook = outlook
        self._changes = [0] * len(self.hosts)
        self._log: list[int] = []
        self._judged: dict[DeviceTask, tuple[list[_JudgedHost], int]] = {}

    def learn(self, outlook: Outlook) -> None:
        """Place later tasks by another outlook."""
        self._outlook = outlook
        self._judged.clear()

    def place(self, task: DeviceTask) -> bool:
        """Place a task where it costs least, on the first of equals; return whether it fits anywhere."""
        return self.placed(task) is not None

    def placed(self, task: DeviceTask) -> TaskPlace | None:
        """Place a task likewise and return its place, or None."""
        number = self._cheapest(task)
        if number is None:
            return None
        host = self.hosts[number]
        chosen = self._outlook.best_devices(host, task)
        self._change(number, host.after(task, chosen))
        return number, chosen

    def give_back(self, task: DeviceTask, held: TaskPlace) -> None:
        """Remove a task from its place."""
        number, chosen = held
        host = self.hosts[number]
        free = {name: amount + task.amounts.get(name, 0) for name, amount in host.free.items()}
        devices = [
            FreeDevice(device.free + task.share, device.kind) if place in chosen else device
            for place, device in enumerate(host.devices)
        ]
        self._change(number, FreeHost(free, tuple(devices)))

    def _change(self, number: int, host: FreeHost) -> None:
        self.hosts[number] = host
        self._changes[number] += 1
        self._log.append(number)

    def _cheapest(self, task: DeviceTask) -> int | None:
        judged, read_until = self._judged.get(task, ([], None))
        changed = range(len(self.hosts)) if read_until is None else set(self._log[read_until:])
        for entry in self._entries(task, changed):
            heapq.heappush(judged, entry)
        self._judged[task] = judged, len(self._log)
        while judged and judged[0][2] != self._changes[judged[0][1]]:
            heapq.heappop(judged)
        return judged[0][1] if judged else None

    def _entries(self, task: DeviceTask, numbers: Iterable[int]) -> Iterable[_JudgedHost]:
        costs: dict[int, float | None] = {}  # Equal empty hosts are one object.
        for number in numbers:
            host = self.hosts[number]
            if id(host) not in costs:
                costs[id(host)] = self._outlook.cost(host, task) if task.fits(host) else None
            cost = costs[id(host)]
            if cost is not None:
                yield cost, number, self._changes[number]


POLICIES: Mapping[str, CostWeights] = MappingProxyType(
    {
        "best fit": CostWeights(gradient=0, offcut=0, scarcity=0, fit=1),
        "gradient": CostWeights(gradient=1, offcut=0, scarcity=0, fit=0.00001),  # The fit only breaks ties.
        "fragmentation": CostWeights(),
    }
)

PUBLISHED_AS: Mapping[str, str] = MappingProxyType({"best fit": "BestFit", "gradient": "FGD", "fragmentation": "FGD"})
"""The published policy that each of ours is compared with."""


MILESTONES = (100, 110, 120, 130)
"""The percentages of the capacity, in arrivals, at which a run is examined."""

WHOLE_DEVICES = (1, 2, 4, 8)
"""Task sizes, in whole devices, for which stranded devices are counted."""

STEP = 2
"""A sample for the curves is taken each time this many more percent have arrived."""


@dataclass(frozen=True, slots=True)
class FilledCluster:
    """The result of a run. Shares are in percent of the capacity; samples are ``STEP`` percent of arrivals apart.

    Args:
        unit: what the capacity is counted in.
        allocated: the allocated share at each milestone that was reached.
        allocated_by_arrival: samples of the allocated share.
        useless_by_arrival: samples of the share that is free but, on average, useless for the expected work.
        empty_hosts: how many hosts with devices are idle at the first milestone.
        stranded: for each of ``WHOLE_DEVICES``, how much is free then, in devices, on hosts with too few whole ones.
        refused: how many tasks had found no place by then, by what they ask for.
    """

    unit: str
    allocated: Mapping[int, float]
    allocated_by_arrival: Sequence[float]
    useless_by_arrival: Sequence[float]
    empty_hosts: int
    stranded: Mapping[int, float]
    refused: Mapping[str, int]


def filled(trace: Trace, policy: str, seed: int, *, until: int = MILESTONES[-1]) -> FilledCluster:
    """Place a seed's arrivals one by one by a policy, up to a milestone."""
    outlook = Outlook(trace.expected, trace.supply, POLICIES[policy])
    filling = FillingHosts(trace.hosts, outlook)
    units = trace.capacity
    arrived = taken = 0
    refused: Counter[str] = Counter()
    allocated, useless = [0.0], [_useless(filling.hosts, outlook, units)]
    at_the_first: Sequence[FreeHost] = ()
    for task in trace.arrivals(seed, percent=MILESTONES[-1]):
        arrived += trace.size(task)
        if filling.place(task):
            taken += trace.size(task)
        elif not at_the_first:
            refused[kind_of(task)] += 1
        # The last task may overshoot the end by more than a step; there is no sample for that.
        while arrived * 100 >= units * STEP * len(allocated) and STEP * len(allocated) <= until:
            if STEP * len(allocated) == MILESTONES[0]:
                at_the_first = list(filling.hosts)
            allocated.append(100 * taken / units)
            useless.append(_useless(filling.hosts, outlook, units))
        if arrived * 100 >= units * until:
            break
    return FilledCluster(
        unit=trace.unit,
        allocated={percent: allocated[percent // STEP] for percent in MILESTONES if percent <= until},
        allocated_by_arrival=allocated,
        useless_by_arrival=useless,
        empty_hosts=sum(
            bool(host.devices) and all(device.free == SIZE for device in host.devices) for host in at_the_first
        ),
        stranded={size: _stranded(at_the_first, size) for size in WHOLE_DEVICES},
        refused=dict(refused),
    )


def _useless(hosts: Sequence[FreeHost], outlook: Outlook, units: int) -> float:
    return 100 * sum(outlook.useless(host) for host in hosts if host.devices) * SIZE / units


def kind_of(task: DeviceTask) -> str:
    """Describe how many devices a task asks for."""
    if not task.devices:
        return "no GPU"
    return "a part" if task.share < SIZE else f"{task.devices} GPU"


def _stranded(hosts: Sequence[FreeHost], size: int) -> float:
    short = [host.devices for host in hosts if sum(device.free == SIZE for device in host.devices) < size]
    return sum(device.free for devices in short for device in devices) / SIZE


SAMPLES = 50


@dataclass(frozen=True, slots=True)
class ComeAndGone:
    """The result of a trace whose tasks leave.

    Args:
        by_time: the percentage of the capacity that is allocated, sampled in equal steps of time.
        placed: how much tasks were given, in percent of what they asked for, in amounts times time.
        mean: the mean percentage of the capacity allocated over the whole time.
        peak_percent: the highest percentage at any time.
        refused: how many tasks found no place, by what they ask for.
    """

    by_time: Sequence[float]
    placed: float
    mean: float
    peak_percent: float
    refused: Mapping[str, int]


def come_and_gone(trace: Trace, policy: str) -> ComeAndGone:
    """Place a trace's tasks as they arrive, and remove them when they leave."""
    hosts = _LearningHosts(trace, policy)
    filling, units = hosts.filling, trace.capacity
    arrivals = sorted(zip(trace.stays, range(len(trace.tasks)), strict=True))
    first, last = arrivals[0][0][0], max([leaves for _comes, leaves in trace.stays])
    step = (last - first) / SAMPLES or 1.0
    leaving: list[tuple[float, int, TaskPlace]] = []
    refused: Counter[str] = Counter()
    samples: list[float] = []
    taken, peak, served, demanded = 0, 0, 0.0, 0.0
    for (comes, leaves), number in arrivals:
        while leaving and leaving[0][0] <= comes:
            left_at, leaver, held = heapq.heappop(leaving)
            samples += [100 * taken / units] * (int((left_at - first) / step) - len(samples))
            filling.give_back(trace.tasks[leaver], held)
            taken -= trace.size(trace.tasks[leaver])
        samples += [100 * taken / units] * (int((comes - first) / step) - len(samples))
        task = trace.tasks[number]
        amount = trace.size(task)
        demanded += amount * (leaves - comes)
        place = filling.placed(task)
        if place is None:
            refused[kind_of(task)] += 1
        else:
            taken += amount
            peak = max(peak, taken)
            served += amount * (leaves - comes)
            heapq.heappush(leaving, (leaves, number, place))
        hosts.note(task)
    return ComeAndGone(
        by_time=samples or [100 * taken / units],
        placed=100 * served / demanded if demanded else 100.0,
        mean=100 * served / (units * (last - first or 1.0)),
        peak_percent=100 * peak / units,
        refused=dict(refused),
    )


class _LearningHosts:
    """Hosts that are filled by what has arrived before, learnt again each time that this has grown by a tenth."""

    def __init__(self, trace: Trace, policy: str) -> None:
        self._trace = trace
        self._weights = POLICIES[policy]
        self._seen: Counter[DeviceTask] = Counter()
        self._learns_at = 1.0
        self.filling = FillingHosts(trace.hosts, self._outlook())

    def _outlook(self) -> Outlook:
        return Outlook(self._seen, self._trace.supply, self._weights)

    def note(self, task: DeviceTask) -> None:
        """Note a task that has arrived."""
        self._seen[task] += 1
        if self._seen.total() >= self._learns_at:
            self._learns_at = self._seen.total() * 1.1
            self.filling.learn(self._outlook())

"""The cheapest host for each task while hosts fill up: only changed hosts are judged again."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from placement.allocators.fragmentation import CostWeights, DeviceTask, FreeDevice, FreeHost, Outlook

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
        free = {name: left + task.amounts.get(name, 0) for name, left in host.free.items()}
        devices = [
            FreeDevice(device.left + task.share, device.kind) if place in chosen else device
            for place, device in enumerate(host.devices)
        ]
        self._change(number, FreeHost(free, tuple(devices)))

    def _change(self, number: int, host: FreeHost) -> None:
        self.hosts[number] = host
        self._changes[number] += 1
        self._log.append(number)

    def _cheapest(self, task: DeviceTask) -> int | None:
        known, seen = self._judged.get(task, ([], None))
        changed = range(len(self.hosts)) if seen is None else set(self._log[seen:])
        for entry in self._entries(task, changed):
            heapq.heappush(known, entry)
        self._judged[task] = known, len(self._log)
        while known and known[0][2] != self._changes[known[0][1]]:
            heapq.heappop(known)
        return known[0][1] if known else None

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

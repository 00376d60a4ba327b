"""The cheapest host for each task, while hosts fill: only what has changed is judged again."""

import heapq
from collections.abc import Iterable, Sequence

from placement.allocators.fragmentation import DeviceTask, FreeHost, Outlook

_JudgedHost = tuple[float, int, int]
"""What a task costs on a host, the number of the host, and how often it had changed by then."""


class FillingHosts:
    """Hosts that tasks are placed on, one after the other."""

    def __init__(self, hosts: Sequence[FreeHost], outlook: Outlook) -> None:
        self.hosts = list(hosts)
        self._outlook = outlook
        self._changes = [0] * len(self.hosts)
        self._log: list[int] = []
        self._judged: dict[DeviceTask, tuple[list[_JudgedHost], int]] = {}

    def place(self, task: DeviceTask) -> bool:
        """Place a task where it costs least; tell whether it fits anywhere. Of equals, the first host takes it."""
        number = self._cheapest(task)
        if number is None:
            return False
        host = self.hosts[number]
        self.hosts[number] = host.after(task, self._outlook.best_devices(host, task))
        self._changes[number] += 1
        self._log.append(number)
        return True

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
        costs: dict[int, float | None] = {}  # Empty hosts that are alike are one object.
        for number in numbers:
            host = self.hosts[number]
            if id(host) not in costs:
                costs[id(host)] = self._outlook.cost(host, task) if task.fits(host) else None
            cost = costs[id(host)]
            if cost is not None:
                yield cost, number, self._changes[number]

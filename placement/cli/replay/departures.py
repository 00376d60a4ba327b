"""Replay of a trace by its times: tasks arrive in order and leave again."""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.allocators.fragmentation import DeviceTask, Outlook
from placement.cli.replay.cheapest import POLICIES, FillingHosts, TaskPlace
from placement.cli.replay.run import kind_of
from placement.cli.replay.traces import Trace

SAMPLES = 50


@dataclass(frozen=True, slots=True)
class ComeAndGone:
    """The result of a trace whose tasks leave.

    Args:
        by_time: the percentage of the capacity that is allocated, sampled in equal steps of time.
        placed: how much tasks were given, in percent of what they asked for, in amounts times time.
        mean: the mean percentage of the capacity allocated over the whole time.
        most: the highest percentage at any time.
        refused: how many tasks found no place, by what they ask for.
    """

    by_time: Sequence[float]
    placed: float
    mean: float
    most: float
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
    taken, most, given, asked = 0, 0, 0.0, 0.0
    for (comes, leaves), number in arrivals:
        while leaving and leaving[0][0] <= comes:
            moment, other, held = heapq.heappop(leaving)
            samples += [100 * taken / units] * (int((moment - first) / step) - len(samples))
            filling.give_back(trace.tasks[other], held)
            taken -= trace.size(trace.tasks[other])
        samples += [100 * taken / units] * (int((comes - first) / step) - len(samples))
        task = trace.tasks[number]
        amount = trace.size(task)
        asked += amount * (leaves - comes)
        place = filling.placed(task)
        if place is None:
            refused[kind_of(task)] += 1
        else:
            taken += amount
            most = max(most, taken)
            given += amount * (leaves - comes)
            heapq.heappush(leaving, (leaves, number, place))
        hosts.note(task)
    return ComeAndGone(
        by_time=samples or [100 * taken / units],
        placed=100 * given / asked if asked else 100.0,
        mean=100 * given / (units * (last - first or 1.0)),
        most=100 * most / units,
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

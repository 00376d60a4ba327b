"""One run: tasks arrive at an empty cluster, and none leaves, until they have asked for more than it has.

The protocol is that of the published results: "Beware of Fragmentation" (Weng et al., USENIX ATC 2023).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.allocators.fragmentation import DeviceTask, FreeHost, Outlook
from placement.cli.replay.cheapest import POLICIES, FillingHosts
from placement.cli.replay.traces import SIZE, Trace

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
        empty_hosts=_empty(at_the_first),
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


def _empty(hosts: Sequence[FreeHost]) -> int:
    return sum(bool(host.devices) and all(device.left == SIZE for device in host.devices) for host in hosts)


def _stranded(hosts: Sequence[FreeHost], size: int) -> float:
    return sum(_free(host) for host in hosts if sum(device.left == SIZE for device in host.devices) < size) / SIZE


def _free(host: FreeHost) -> int:
    return sum(device.left for device in host.devices)

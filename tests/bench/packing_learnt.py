"""A published trace placed by a mix of work that is learnt on the way, as by a server without flavors in its profile.

``python -m tests.bench.packing_learnt TRACE [--workload W ...] [--seeds 2]`` prints, for each workload, the percentage
of GPUs allocated when tasks for 100 % have arrived: learnt from 1,000 earlier requests, from nothing, and as published.
It returns 1 if a bar is missed.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from placement.allocators.fragmentation import DeviceTask, FreeHost, LearntMix, Outlook, size_of, work_of
from placement.cli.simulation import traces
from placement.cli.simulation.packing import FillingHosts
from placement.cli.simulation.trace_reports import FIRST_SEED
from placement.cli.simulation.traces import Trace
from placement.services.expected_work import FIRST_NEWS, MAX_FLAVORS

EARLIER = 1_000
SEED_OF_EARLIER = 1_000
"""Earlier work is drawn with a seed that is greater by this."""

LEAST_ABOVE_FGD, LEAST_FROM_NOTHING, LEAST_ON_GPUSPEC33 = 0.0, -0.5, 93.5


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    options = _options()
    published = traces.published(options.trace)
    workloads = options.workload or sorted({workload for workload, _policy, _percent in published})
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    is_met = True
    print("| workload | from 1,000 requests | from nothing | FGD | BestFit |\n| --- | --- | --- | --- | --- |")
    for workload in workloads:
        trace, fgd = traces.read(options.trace, workload), published[workload, "FGD", 100]
        warm, cold = (fmean([allocated(trace, seed, earlier=n) for seed in seeds]) for n in (EARLIER, 0))
        is_met &= warm >= fgd + LEAST_ABOVE_FGD and cold >= fgd + LEAST_FROM_NOTHING
        is_met &= workload != "gpuspec33" or cold >= LEAST_ON_GPUSPEC33
        cells = f"{warm:.2f} | {cold:.2f} | {fgd:.2f} | {published[workload, 'BestFit', 100]:.2f}"
        print(f"| {workload} | {cells} |", flush=True)
    return 0 if is_met else 1


def allocated(trace: Trace, seed: int, *, earlier: int) -> float:
    """Return the percentage allocated when tasks for all devices have arrived, after so much earlier work."""
    dice = random.Random(seed + SEED_OF_EARLIER)
    hosts = LearningHosts(trace, [dice.choice(trace.tasks) for _ in range(earlier)])
    units, arrived, taken = sum(trace.supply.units.values()), 0, 0
    for task in trace.arrivals(seed, percent=130):
        arrived += task.devices * task.share
        taken += task.devices * task.share if hosts.place(task) else 0
        if arrived >= units:
            break
    return 100 * taken / units


class LearningHosts:
    """Hosts that are filled by the mix of what was placed before, read again each time that it has doubled."""

    def __init__(self, trace: Trace, earlier: Iterable[DeviceTask] = ()) -> None:
        self._trace = trace
        self._mix = LearntMix(0.0)
        for task in earlier:
            self._learn(task)
        self._read(trace.hosts)

    def place(self, task: DeviceTask) -> bool:
        """Place a task where it costs least, and learn from it; return whether it fits anywhere."""
        is_placed = self.filling.place(task)
        if is_placed:
            self._learn(task)
            if self._mix.total == self._known + max(FIRST_NEWS, self._known):
                self._read(self.filling.hosts)
        return is_placed

    def _learn(self, task: DeviceTask) -> None:
        work = work_of([task])
        self._mix.note_asked(work)
        self._mix.note_allocated(size_of(work))

    def _read(self, hosts: Sequence[FreeHost]) -> None:
        self._known = self._mix.total
        self.filling = FillingHosts(hosts, Outlook(self._mix.expected(MAX_FLAVORS), self._trace.supply))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.packing_learnt", description=__doc__)
    parser.add_argument("trace", type=Path, help="the folder with the CSV files")
    parser.add_argument("--workload", action="append", help="repeatable; by default all that were published")
    parser.add_argument("--seeds", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""A published trace, packed by the strategy ``fragmentation``: the table of docs/packing.md.

``python -m tests.bench.packing TRACE`` prints, for each workload, the percentage of GPUs that are allocated when tasks
for 100 % of them have arrived: with the mix of tasks known, learnt from 1,000 earlier requests, and learnt from
nothing; as published for FGD and BestFit; and the bound that no algorithm can exceed (packing_bounds.py). Exits with 1
if a bar is missed. ``placement simulate --trace`` compares the policies themselves.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

from placement.allocators.fragmentation.outlook import Outlook
from placement.cli.simulation import traces
from placement.cli.simulation.packing import FillingHosts
from placement.cli.simulation.trace_reports import FIRST_SEED
from tests.bench.packing_bounds import bound
from tests.bench.packing_cloud import LearningHosts

EARLIER = 1_000
SEED_OF_EARLIER = 1_000
"""Earlier work is drawn with a seed that is greater by this."""

LEAST_ABOVE_FGD = {"known": 0.0, "learnt": 0.0, "from nothing": -0.5}
LEAST_ON_MEAN, LEAST_ON_GPUSPEC33 = 0.5, 2.0

Asked = tuple[Path, str, str, int]
"""The folder of the trace, a workload, how the mix is known, and a seed."""


def allocated(asked: Asked) -> float:
    """Return the percentage of GPUs that is allocated."""
    folder, workload, way, seed = asked
    trace = traces.read(folder, workload)
    hosts: FillingHosts | LearningHosts
    if way == "known":
        hosts = FillingHosts(trace.hosts, Outlook(trace.expected, trace.supply))
    else:
        chance = random.Random(seed + SEED_OF_EARLIER)
        number = EARLIER if way == "learnt" else 0
        hosts = LearningHosts(trace, [chance.choice(trace.tasks) for _ in range(number)])
    arrived, taken = 0, 0
    for task in trace.arrivals(seed, percent=130):
        arrived += trace.size(task)
        taken += trace.size(task) if hosts.place(task) else 0
        if arrived >= trace.capacity:
            break
    return 100 * taken / trace.capacity


def rows(
    options: argparse.Namespace, workloads: Sequence[str], published: Mapping[tuple[str, str, int], float]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the figures of each workload by column."""
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as processes:
        for workload in workloads:
            means = {}
            for way, number in (("known", options.seeds), ("learnt", options.learnt), ("from nothing", options.learnt)):
                seeds = range(FIRST_SEED, FIRST_SEED + number)
                asked = [(options.trace, workload, way, seed) for seed in seeds]
                means[way] = fmean(processes.map(allocated, asked))
            others = {policy: published[workload, policy, 100] for policy in ("FGD", "BestFit")}
            seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
            yield workload, {**means, **others, "bound": bound(traces.read(options.trace, workload), seeds)}


def main() -> int:
    """Run, print, and return 1 if a bar is missed."""
    options = _options()
    published = traces.published(options.trace)
    workloads = options.workload or sorted({workload for workload, _policy, _percent in published})
    missed, above_fgd = [], []
    print("| workload | known | learnt | from nothing | FGD | BestFit | bound |\n|---|---|---|---|---|---|---|")
    for workload, figures in rows(options, workloads, published):
        print(f"| {workload} | {' | '.join(f'{value:.2f}' for value in figures.values())} |", flush=True)
        least = LEAST_ABOVE_FGD | ({"known": LEAST_ON_GPUSPEC33} if workload == "gpuspec33" else {})
        missed += [f"{workload}, {way}" for way, more in least.items() if figures[way] < figures["FGD"] + more]
        missed += [f"{workload}, BestFit"] if figures["known"] < figures["BestFit"] else []
        above_fgd.append(figures["known"] - figures["FGD"])
    missed += ["mean"] if fmean(above_fgd) < LEAST_ON_MEAN else []
    print(
        f"\nmean above FGD: {fmean(above_fgd):.2f}\n{'missed: ' + '; '.join(missed) if missed else 'all bars are met'}"
    )
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.bench.packing", description=__doc__, formatter_class=form)
    parser.add_argument("trace", type=Path, help="the folder with the CSV files")
    parser.add_argument("--workload", action="append", help="repeatable; by default all that were published")
    parser.add_argument("--seeds", type=int, default=10, help="with the mix known (default: %(default)s)")
    parser.add_argument("--learnt", type=int, default=2, help="seeds with a mix that is learnt (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

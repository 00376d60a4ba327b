"""Small clouds where work comes and goes: where CPUs or NICs run out before GPUs, best fit is better.

``python -m tests.bench.packing_departures [--seeds 3]`` prints how much of the GPU time asked for each policy grants.
"""

import argparse
import random
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from placement.allocators.fragmentation.hosts import DeviceTask, FreeDevice, FreeHost
from placement.cli.simulation.packing import POLICIES, come_and_gone
from placement.cli.simulation.traces import SIZE, Trace

HOSTS, ARRIVALS, MEAN_STAY = 30, 3_000, 100.0


class SmallCloud(NamedTuple):
    """Hosts that are alike, work with its weights, and the load, as part of all GPUs."""

    name: str
    host: FreeHost
    work: Sequence[tuple[int, DeviceTask]]
    load: float


def _task(devices: int, share: int = SIZE, **amounts: int) -> DeviceTask:
    return DeviceTask(amounts, devices, share if devices else 0)


def _host(gpus: int, **free: int) -> FreeHost:
    return FreeHost(free, (FreeDevice(SIZE),) * gpus)


CLOUDS = (
    SmallCloud(
        "whole GPUs: 1, 2, 4 or 8 of 8",
        _host(8, CPU=96),
        [(4, _task(1, CPU=8)), (3, _task(2, CPU=16)), (2, _task(4, CPU=32)), (1, _task(8, CPU=64))],
        1.2,
    ),
    SmallCloud(
        "CPUs run out first",
        _host(4, CPU=48),
        [(4, _task(1, 500, CPU=12)), (3, _task(1, CPU=24)), (2, _task(0, CPU=8)), (1, _task(2, CPU=40))],
        0.9,
    ),
    SmallCloud(
        "NICs run out first: 4 beside 8 GPUs",
        _host(8, CPU=96, NIC=4),
        [(4, _task(1, CPU=8, NIC=1)), (3, _task(1, CPU=8)), (2, _task(2, CPU=16, NIC=1)), (1, _task(4, CPU=32, NIC=4))],
        0.9,
    ),
)


def trace_of(cloud: SmallCloud, seed: int) -> Trace:
    """Return work that comes at random and stays for random times."""
    dice = random.Random(seed)
    tasks, weights = [task for _weight, task in cloud.work], [weight for weight, _task in cloud.work]
    gpus = sum([weight * task.devices * task.share for weight, task in cloud.work]) / sum(weights) / SIZE
    rate = cloud.load * HOSTS * len(cloud.host.devices) / (gpus * MEAN_STAY)
    comes, stays = 0.0, []
    for _ in range(ARRIVALS):
        comes += dice.expovariate(rate)
        stays.append((comes, comes + dice.expovariate(1 / MEAN_STAY)))
    return Trace([cloud.host] * HOSTS, dice.choices(tasks, weights, k=ARRIVALS), stays)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.packing_departures", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    print(f"| cloud | {' | '.join(POLICIES)} |\n| --- |{' --- |' * len(POLICIES)}")
    for cloud in CLOUDS:
        traces = [trace_of(cloud, seed) for seed in seeds]
        granted = [[come_and_gone(trace, policy).placed for trace in traces] for policy in POLICIES]
        cells = [f"{fmean(parts):.1f} ({min(parts):.1f}..{max(parts):.1f})" for parts in granted]
        print(f"| {cloud.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""The workload: CPU and GPU jobs with random arrivals and durations. A seed always gives the same trace."""

import random
from dataclasses import dataclass

from placement.domain.search_plan import CandidateRequest, RequestGroup

VCPUS_PER_GPU = 8
MB_PER_VCPU = 4096
GPUS_PER_SWITCH = 2

GPU_SIZES = {1: 0.5, 2: 0.25, 4: 0.2, 8: 0.05}
"""A job's GPUs -> the fraction of jobs."""

CPU_SIZES = {8: 0.4, 16: 0.3, 32: 0.3}
"""A job's VCPUs -> the fraction of jobs."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much the jobs ask for.

    Args:
        gpu: the mean number of GPUs requested at a time, as a fraction of all GPUs.
        cpu: the mean number of VCPUs that CPU jobs request at a time, as a fraction of those on servers without GPUs.
        duration: the length of the trace, in mean durations of a job.
    """

    gpu: float = 0.95
    cpu: float = 0.95
    duration: float = 5.0


@dataclass(frozen=True, slots=True)
class Job:
    """A job: what it asks for, when it arrives and when it leaves. Times are in mean durations of a job."""

    gpus: int
    vcpus: int
    arrives: float
    leaves: float

    @property
    def request(self) -> CandidateRequest:
        """The request for candidates.

        It asks for GPUs in pairs on one PCIe switch, each pair on a switch of its own; a single GPU is its own group.
        """
        host = RequestGroup(resources={"VCPU": self.vcpus, "MEMORY_MB": self.vcpus * MB_PER_VCPU})
        together = min(self.gpus, GPUS_PER_SWITCH)
        devices = [
            RequestGroup(suffix=f"_GPU{number}", resources={"PGPU": together})
            for number in range(self.gpus // together if together else 0)
        ]
        return CandidateRequest(groups=(host, *devices), isolate=True, limit=1)


def trace(seed: int, load: Load, *, gpus: int, vcpus: int) -> list[Job]:
    """Return jobs in order of arrival: Poisson arrivals, exponential durations with mean 1.

    The cloud has so many ``gpus`` and, on servers without GPUs, so many ``vcpus``.
    """
    dice = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    jobs = [
        *(
            Job(size, size * VCPUS_PER_GPU, start, end)
            for size, start, end in _arrivals(dice, GPU_SIZES, rate=load.gpu * gpus, duration=load.duration)
        ),
        *(
            Job(0, size, start, end)
            for size, start, end in _arrivals(dice, CPU_SIZES, rate=load.cpu * vcpus, duration=load.duration)
        ),
    ]
    return sorted(jobs, key=lambda job: job.arrives)


def _arrivals(
    dice: random.Random, sizes: dict[int, float], *, rate: float, duration: float
) -> list[tuple[int, float, float]]:
    """Return (size, start, end) of jobs that ask for ``rate`` units at a time on average, until ``duration``."""
    mean_size = sum(size * share for size, share in sizes.items())
    arrivals, now = [], 0.0
    while (now := now + dice.expovariate(rate / mean_size)) < duration:
        size = dice.choices(list(sizes), list(sizes.values()))[0]
        arrivals.append((size, now, now + dice.expovariate(1.0)))
    return arrivals

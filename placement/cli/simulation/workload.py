"""The workload: CPU jobs and GPU jobs that arrive at random and stay a while. The same seed gives the same trace."""

import random
from dataclasses import dataclass

from placement.domain.candidate_request import CandidateRequest, RequestGroup

VCPUS_PER_GPU = 8
MB_PER_VCPU = 4096
GPUS_PER_SWITCH = 2

GPU_SIZES = {1: 0.5, 2: 0.25, 4: 0.2, 8: 0.05}
"""GPUs of a job -> share of the jobs."""

CPU_SIZES = {8: 0.4, 16: 0.3, 32: 0.3}
"""VCPUs of a job -> share of the jobs."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked for.

    Args:
        gpu: GPUs asked for at a time, on average, as a share of all GPUs.
        cpu: VCPUs that CPU jobs ask for at a time, as a share of the VCPUs of servers without GPUs.
        duration: how long it goes on, in mean durations of a job.
    """

    gpu: float = 0.95
    cpu: float = 0.95
    duration: float = 5.0


@dataclass(frozen=True, slots=True)
class Job:
    """A job: what it asks for and from when to when it runs, if it is placed. Times are in mean durations of a job."""

    gpus: int
    vcpus: int
    arrives: float
    leaves: float

    @property
    def request(self) -> CandidateRequest:
        """The request for candidates.

        GPUs are asked for in pairs of one PCIe switch, as far as there are pairs, each pair on a switch of its own.
        """
        host = RequestGroup(resources={"VCPU": self.vcpus, "MEMORY_MB": self.vcpus * MB_PER_VCPU})
        together = min(self.gpus, GPUS_PER_SWITCH)
        devices = [
            RequestGroup(suffix=f"_GPU{number}", resources={"PGPU": together})
            for number in range(self.gpus // together if together else 0)
        ]
        return CandidateRequest(groups=(host, *devices), isolate=True, limit=1)


def trace(seed: int, load: Load, *, gpus: int, vcpus: int) -> list[Job]:
    """Return jobs by the time they arrive: Poisson arrivals, exponential durations of mean 1.

    Args:
        seed: what is random.
        load: how much is asked for.
        gpus: how many GPUs the cloud has.
        vcpus: how many VCPUs its servers without GPUs have.
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
    """Return (size, start, end) of jobs that ask for ``rate`` units at a time, on average, until ``duration``."""
    mean_size = sum(size * share for size, share in sizes.items())
    found, now = [], 0.0
    while (now := now + dice.expovariate(rate / mean_size)) < duration:
        size = dice.choices(list(sizes), list(sizes.values()))[0]
        found.append((size, now, now + dice.expovariate(1.0)))
    return found

"""One run: a trace of jobs on an empty cloud under one policy, and its result."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from placement.cli.simulation.cloud import Cloud
from placement.cli.simulation.policies import CandidateChoice
from placement.cli.simulation.workload import Job
from placement.domain.search_plan import Choice, Plan, plan_for

SAMPLES = 100
"""The number of samples in a run, in equal steps of time."""

WARM_UP = 0.4
"""The fraction of time in which the cloud fills; its jobs and samples do not count."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: jobs after the warm-up, and samples over the whole time.

    ``stranded`` counts free GPUs that no job of four GPUs can use, ``used`` GPUs in use.
    """

    gpu_jobs: int
    gpu_rejected: int
    cpu_jobs: int
    cpu_rejected: int
    stranded: tuple[int, ...]
    used: tuple[int, ...]

    @property
    def mean_stranded(self) -> float:
        """The mean number of stranded GPUs after the warm-up."""
        return _mean_after_warm_up(self.stranded)

    @property
    def mean_used(self) -> float:
        """The mean number of GPUs in use after the warm-up."""
        return _mean_after_warm_up(self.used)


def run(jobs: Sequence[Job], cloud: Cloud, policy: CandidateChoice, *, duration: float) -> RunResult:
    """Place or reject each job when it arrives, and remove it when it leaves."""
    running: list[tuple[float, int, Plan, int, Choice]] = []
    counted, rejected = {True: 0, False: 0}, {True: 0, False: 0}
    stranded: list[int] = []
    used: list[int] = []
    plans: dict[tuple[int, int], Plan] = {}
    for number, job in enumerate(jobs):
        while len(stranded) < SAMPLES and len(stranded) * duration / SAMPLES <= job.arrives:
            _leave(running, cloud, len(stranded) * duration / SAMPLES)
            stranded.append(cloud.stranded_gpus)
            used.append(cloud.used_gpus)
        _leave(running, cloud, job.arrives)
        plan = plans.setdefault((job.gpus, job.vcpus), plan_for(job.request))
        found = policy(plan, cloud)
        if found is not None:
            cloud.place(plan, *found)
            heapq.heappush(running, (job.leaves, number, plan, *found))
        if job.arrives >= WARM_UP * duration:
            counted[job.gpus > 0] += 1
            rejected[job.gpus > 0] += found is None
    return RunResult(counted[True], rejected[True], counted[False], rejected[False], tuple(stranded), tuple(used))


def _leave(running: list[tuple[float, int, Plan, int, Choice]], cloud: Cloud, now: float) -> None:
    while running and running[0][0] <= now:
        _leaves, _number, plan, root, choice = heapq.heappop(running)
        cloud.place(plan, root, choice, sign=-1)


def _mean_after_warm_up(samples: Sequence[int]) -> float:
    counting = samples[int(WARM_UP * SAMPLES) :]
    return sum(counting) / len(counting)

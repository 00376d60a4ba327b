"""The compared policies, which choose a candidate for a client that takes the first one, and a run of jobs."""

import heapq
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, Sra
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.ranking import ROOT, Key, Ranking, TreeScores, amounts_of
from placement.candidates.search import Candidate, candidates_in
from placement.candidates.tree_order import LAST, KeyOrder, KeyQueue, Portion, best_first
from placement.cli.simulation.cloud import LEVELS, VCPUS_PER_GPU, Cloud, Job
from placement.domain.search_plan import Choice, Plan, plan_for
from placement.domain.tree import Tree

CandidateChoice = Callable[[Plan, Cloud], Candidate | None]

_FIT = Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated", 1)})
_PACKED = Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("MostAllocated", 1)})
_SRA = Sra({"PGPU": 1})
_RESERVE = {"PGPU": {"VCPU": VCPUS_PER_GPU}}
_LAST, _FILTER = (Proportional(_RESERVE, exempt="own", mode=mode) for mode in ("last", "filter"))

PROFILES: Mapping[str, RankingProfile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            RankingProfile(),
            RankingProfile("fit", Profile(fit=_FIT), 0),
            RankingProfile("fit + sra", Profile(fit=_FIT, sra=_SRA), 0),
            RankingProfile("all parts", Profile(fit=_FIT, sra=_SRA, proportional=_LAST), 5),
            RankingProfile("packed + sra", Profile(fit=_PACKED, sra=_SRA), 5),
            RankingProfile("all, reserve kept", Profile(fit=_FIT, sra=_SRA, proportional=_FILTER), 5),
        )
    }
)


def policies(seed: int) -> dict[str, CandidateChoice]:
    """Return the policies by their names in the report."""
    return {
        "unordered": in_order_of_ids,
        "shuffled": shuffled(seed),
        **{name: ranked(profile) for name, profile in PROFILES.items()},
    }


def in_order_of_ids(plan: Plan, cloud: Cloud) -> Candidate | None:
    """Choose the first candidate with ``[ranking] enabled = false``."""
    return next(candidates_in(plan, cloud.trees(plan), RequestBudget()), None)


def shuffled(seed: int) -> CandidateChoice:
    """Choose a random candidate, as ``randomize_allocation_candidates`` does without ranking."""
    dice = random.Random(seed)  # noqa: S311 - a simulation, not a secret

    def choose(plan: Plan, cloud: Cloud) -> Candidate | None:
        candidates = list(candidates_in(plan, cloud.trees(plan), RequestBudget()))
        return dice.choice(candidates) if candidates else None

    return choose


def ranked(profile: RankingProfile) -> CandidateChoice:
    """Choose a profile's best candidate."""

    def choose(plan: Plan, cloud: Cloud) -> Candidate | None:
        scores = TreeScores(amounts_of(plan), Ranking(profile, LEVELS))
        trees = cloud.trees(plan)
        number = len(scores.classes)
        sums = np.array(cloud.sums([tree.root for tree in trees], scores.classes), dtype=np.int64)
        roots, *amounts = sums.reshape(-1, 1 + 2 * number).T
        keys = KeyOrder(scores.keys(roots, amounts[:number], amounts[number:]), np.arange(len(trees)))
        queue = KeyQueue(keys, filters=scores.filters)
        by_root = {tree.root: tree for tree in trees}
        composer = CompactFirst(plan, RequestBudget(), is_exhaustive=False)

        def composed(expected: Key, tree: Tree) -> Iterator[tuple[Key, Candidate]]:
            fails, negated, root = expected
            if best := composer.composed_in(tree):
                yield (fails, negated + scores.lost(best.counts), root), (root, next(best.choices))

        portion = Portion([(key, by_root[key[ROOT]]) for key in queue], LAST)
        best = next(best_first([portion], composed), None)
        return None if best is None else best[1]

    return choose


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
        candidate = policy(plan, cloud)
        if candidate is not None:
            cloud.place(plan, *candidate)
            heapq.heappush(running, (job.leaves, number, plan, *candidate))
        if job.arrives >= WARM_UP * duration:
            counted[job.gpus > 0] += 1
            rejected[job.gpus > 0] += candidate is None
    return RunResult(counted[True], rejected[True], counted[False], rejected[False], tuple(stranded), tuple(used))


def _leave(running: list[tuple[float, int, Plan, int, Choice]], cloud: Cloud, now: float) -> None:
    while running and running[0][0] <= now:
        _leaves, _number, plan, root, choice = heapq.heappop(running)
        cloud.place(plan, root, choice, sign=-1)


def _mean_after_warm_up(samples: Sequence[int]) -> float:
    counting = samples[int(WARM_UP * SAMPLES) :]
    return sum(counting) / len(counting)

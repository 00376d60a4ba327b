"""The cost of one event in a tree of 1,000 queues and 100,000 jobs: shares maintained or recomputed.

``python -m tests.bench.fair_share`` prints the table. CPU time, no database.
"""

import gc
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial

from placement.allocators.fair_share import (
    Branch,
    FairShares,
    Giving,
    Held,
    Leaf,
    leaf_paths,
    preempt,
    reclaim,
)

QUEUES, JOBS_PER_QUEUE, DEPARTMENTS = 1_000, 100, 20
ALLOCATIONS = 100_000
CLAIMS = {
    "8 GPUs": {"PGPU": 8},
    "640 VCPUs, 2.5 TiB and 40 GPUs": {"VCPU": 640, "MEMORY_MB": 2_621_440, "PGPU": 40},
}
PRIORITY = 50
FLAVOURS = ({"VCPU": 4, "MEMORY_MB": 8192}, {"VCPU": 8, "MEMORY_MB": 65536}, {"VCPU": 8, "MEMORY_MB": 32768, "PGPU": 1})


def tree(rng: random.Random) -> Branch:
    """Return root / 20 departments / 50 queues each / 100 jobs each."""
    per_department = QUEUES // DEPARTMENTS
    return Branch(
        "root",
        tuple(
            Branch(f"d{department}", tuple(queue(rng, number) for number in range(per_department)), rng.randint(1, 5))
            for department in range(DEPARTMENTS)
        ),
    )


def queue(rng: random.Random, number: int) -> Branch:
    return Branch(f"q{number}", tuple(Leaf(f"j{job}") for job in range(JOBS_PER_QUEUE)), rng.randint(1, 50))


class Cluster:
    """The initial state for both ways: what every job uses and waits for."""

    def __init__(self) -> None:
        rng = random.Random(6)
        self.root = tree(rng)
        self.leaves = list(leaf_paths(self.root))
        self.tasks = {leaf: rng.choice(FLAVOURS) for leaf in self.leaves}
        self.usage = {leaf: times(self.tasks[leaf], rng.randint(0, 5)) for leaf in self.leaves}
        names = {name for flavour in FLAVOURS for name in flavour}
        used = {name: sum(amounts.get(name, 0) for amounts in self.usage.values()) for name in names}
        self.totals = {name: amount * 5 // 4 for name, amount in used.items()}

    def anew(self) -> FairShares:
        """Compute every share."""
        shares = FairShares(self.root, self.totals, usage=self.usage, tasks=self.tasks)
        shares.first()
        return shares


def times(amounts: dict[str, int], count: int) -> dict[str, int]:
    return {name: amount * count for name, amount in amounts.items()}


def one_event(cluster: Cluster, shares: FairShares, rng: random.Random) -> None:
    """Change how many tasks a job uses, and ask who is next."""
    leaf = rng.choice(cluster.leaves)
    cluster.usage[leaf] = times(cluster.tasks[leaf], rng.randint(0, 5))
    shares.use(leaf, cluster.usage[leaf])
    shares.first()


def exhausted_and_freed(shares: FairShares) -> None:
    """Exhaust a class and free it again, asking who is next each time; this affects all that wait for it."""
    leaf = next(shares.leaves())
    usage, free = shares.usage(leaf), shares.free()
    shares.use(leaf, usage | {"PGPU": usage["PGPU"] + free["PGPU"]})
    shares.first()
    shares.use(leaf, usage)
    shares.first()


def any_size(rng: random.Random) -> dict[str, int]:
    return {"VCPU": rng.randint(1, 64), "MEMORY_MB": rng.randint(1, 262_144), "PGPU": rng.choice((0, 0, 1, 2, 4, 8))}


SIZES: dict[str, Callable[[random.Random], dict[str, int]]] = {
    "three flavours": lambda rng: rng.choice(FLAVOURS),
    "all differ": any_size,
}


class Allocations:
    """100,000 allocations of 200 queues with five projects each, and a claim by the queue that has least."""

    def __init__(self, sizes: Callable[[random.Random], dict[str, int]]) -> None:
        rng = random.Random(8)
        departments = [
            Branch(f"d{number}", tuple(small_queue(rng, inner) for inner in range(20)), rng.randint(1, 3))
            for number in range(10)
        ]
        root = Branch("root", tuple(departments))
        leaves = list(leaf_paths(root))
        self.claimant = leaves[-1]
        self.held = [
            Held(f"vm{number}", leaves[int(len(leaves) * rng.random() ** 2)], sizes(rng), rng.randint(0, 100))
            for number in range(ALLOCATIONS)
        ]
        usage: dict[str, dict[str, int]] = {leaf: {} for leaf in leaves}
        for one in self.held:
            for name, amount in one.amounts.items():
                usage[one.leaf][name] = usage[one.leaf].get(name, 0) + amount
        names = {name for flavour in FLAVOURS for name in flavour}
        totals = {name: sum(amounts.get(name, 0) for amounts in usage.values()) for name in names}
        self.shares = FairShares(root, totals, usage=usage)

    def reclaim(self, task: dict[str, int]) -> Giving:
        """Return who gives back."""
        return reclaim(self.shares, self.claimant, task, held=self.held)

    def preempt(self, task: dict[str, int]) -> Giving:
        """Return who gives back if values are priorities."""
        return preempt(self.shares, self.claimant, task, priority=PRIORITY, held=self.held)


def small_queue(rng: random.Random, number: int) -> Branch:
    """Return a queue with five projects; the last project of the last queue, which claims, is entitled to most."""
    leaves = [Leaf(f"p{leaf}", 100 if leaf == 4 else 1) for leaf in range(5)]
    return Branch(f"q{number}", tuple(leaves), rng.randint(1, 5) + 50 * (number == 19))


def milliseconds(work: Callable[[], object], *, repeats: int) -> float:
    """Return the median CPU time."""
    found = []
    for _repeat in range(repeats):
        before = time.process_time_ns()
        work()
        found.append((time.process_time_ns() - before) / 1e6)
    return statistics.median(found)


def report() -> str:
    """Measure, and check that both ways give the same shares."""
    cluster, rng = Cluster(), random.Random(7)
    shares = cluster.anew()
    gc.collect()
    gc.freeze()
    event = milliseconds(lambda: one_event(cluster, shares, rng), repeats=5_000)
    transition = milliseconds(lambda: exhausted_and_freed(shares), repeats=5) / 2
    recomputed = milliseconds(cluster.anew, repeats=3)
    assert shares.nodes() == cluster.anew().nodes()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return f"""# Fair shares: one event

{QUEUES:,} queues in {DEPARTMENTS} departments, {QUEUES * JOBS_PER_QUEUE:,} jobs, 3 classes. Written by `python -m
tests.bench.fair_share`, commit {commit.stdout.strip()}; median CPU time. Afterwards all shares equal those of a
full recomputation.

| what happens, and then "who is next?" | CPU ms | recomputing / this |
| --- | --- | --- |
| one job takes or gives back resources | {event:.3f} | **{recomputed / event:,.0f}x** |
| a class becomes exhausted, or free again | {transition:,.1f} | {recomputed / transition:,.1f}x |
| full recomputation | {recomputed:,.0f} | |

## Giving back

{ALLOCATIONS:,} allocations with 101 values, of 1,000 projects in 200 queues; median CPU time. Everybody
may give: the claimant is entitled to more than it asks for.

| sizes | asked | claim | given back | CPU ms |
| --- | --- | --- | --- | --- |
{chr(10).join(giving_back())}
"""


def giving_back() -> Iterator[str]:
    """Measure reclaiming, and yield the lines of its table."""
    for sizes, size in SIZES.items():
        allocations = Allocations(size)
        for asked, ask in (("reclaim", allocations.reclaim), (f"preempt, priority {PRIORITY}", allocations.preempt)):
            for claim, task in CLAIMS.items():
                giving = ask(task)
                assert giving.feasible
                cpu_ms = milliseconds(partial(ask, task), repeats=3)
                yield f"| {sizes} | {asked} | {claim} | {len(giving.given_back)} | {cpu_ms:,.0f} |"


if __name__ == "__main__":
    print(report())

"""The cost of one event in a tree of 1,000 queues and 100,000 jobs, and of who gives back, of 100,000 consumers.

``python -m tests.bench.fair_share`` prints the table. CPU time, no database.
"""

import gc
import random
from collections.abc import Callable, Mapping
from functools import partial

from placement.allocators.fair_share.reclaim import Held, reclaim
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch, Leaf
from tests.bench.meters import cpu_ms
from tests.unit.allocators.fair_share_trees import leaf_paths

DEPARTMENTS, QUEUES, JOBS = 20, 50, 100
"""Each within one of the level above."""

CONSUMERS = 100_000
CLAIMS = {"8 GPUs": {"PGPU": 8}, "640 VCPUs, 2.5 TiB and 40 GPUs": {"VCPU": 640, "MEMORY_MB": 2_621_440, "PGPU": 40}}
PRIORITY = 50
FLAVORS = ({"VCPU": 4, "MEMORY_MB": 8192}, {"VCPU": 8, "MEMORY_MB": 65536}, {"VCPU": 8, "MEMORY_MB": 32768, "PGPU": 1})

Amounts = Mapping[str, int]


def any_size(chance: random.Random) -> Amounts:
    """Return amounts that hardly two consumers have in common."""
    gpus = chance.choice((0, 0, 1, 2, 4, 8))
    return {"VCPU": chance.randint(1, 64), "MEMORY_MB": chance.randint(1, 262_144), "PGPU": gpus}


SIZES: Mapping[str, Callable[[random.Random], Amounts]] = {
    "three flavors": lambda chance: chance.choice(FLAVORS),
    "all differ": any_size,
}


def branch(name: str, width: int, below: Callable[[int], Branch | Leaf], weight: int = 1) -> Branch:
    """Return a branch with so many children."""
    return Branch(name, tuple(below(number) for number in range(width)), weight)


def totals_of(usage: Mapping[str, Amounts]) -> dict[str, int]:
    """Return how much of each class is in use."""
    names = {name for flavor in FLAVORS for name in flavor}
    return {name: sum(amounts.get(name, 0) for amounts in usage.values()) for name in names}


class Jobs:
    """Jobs that use something, and wait for more."""

    def __init__(self) -> None:
        self.chance = chance = random.Random(6)
        self.root = branch(
            "root",
            DEPARTMENTS,
            lambda d: branch(
                f"d{d}",
                QUEUES,
                lambda q: branch(f"q{q}", JOBS, lambda j: Leaf(f"j{j}"), chance.randint(1, 50)),
                chance.randint(1, 5),
            ),
        )
        self.leaves = list(leaf_paths(self.root))
        self.tasks = {leaf: chance.choice(FLAVORS) for leaf in self.leaves}
        self.usage = {leaf: self.tasks_of(leaf) for leaf in self.leaves}
        self.totals = {name: amount * 5 // 4 for name, amount in totals_of(self.usage).items()}
        self.shares = self.anew()

    def tasks_of(self, leaf: str) -> dict[str, int]:
        """Return what a random number of a job's tasks use."""
        number = self.chance.randint(0, 5)
        return {name: amount * number for name, amount in self.tasks[leaf].items()}

    def anew(self) -> FairShares:
        """Compute every share."""
        shares = FairShares(self.root, self.totals, usage=self.usage, tasks=self.tasks)
        shares.first()
        return shares

    def one_event(self) -> None:
        """Change how many tasks a job uses, and ask who is next."""
        leaf = self.chance.choice(self.leaves)
        self.usage[leaf] = self.tasks_of(leaf)
        self.shares.use(leaf, self.usage[leaf])
        self.shares.first()

    def exhaust_and_free(self) -> None:
        """Exhaust a class and free it again, asking who is next each time; this affects all that wait for it."""
        leaf = self.leaves[0]
        usage, free = self.shares.usage(leaf), self.shares.free()
        self.shares.use(leaf, usage | {"PGPU": usage["PGPU"] + free["PGPU"]})
        self.shares.first()
        self.shares.use(leaf, usage)
        self.shares.first()


def allocations(sizes: Callable[[random.Random], Amounts]) -> tuple[FairShares, str, list[Held]]:
    """Return consumers of 200 queues of five projects each, and the project that claims, which is entitled to most."""
    chance = random.Random(8)

    def queue(number: int) -> Branch:
        weight = chance.randint(1, 5) + 50 * (number == 19)
        return branch(f"q{number}", 5, lambda project: Leaf(f"p{project}", 100 if project == 4 else 1), weight)

    root = branch("root", 10, lambda number: branch(f"d{number}", 20, queue, chance.randint(1, 3)))
    leaves = list(leaf_paths(root))
    held = [
        Held(f"vm{number}", leaves[int(len(leaves) * chance.random() ** 2)], sizes(chance), chance.randint(0, 100))
        for number in range(CONSUMERS)
    ]
    usage: dict[str, dict[str, int]] = {leaf: {} for leaf in leaves}
    for consumer in held:
        for name, amount in consumer.amounts.items():
            usage[consumer.leaf][name] = usage[consumer.leaf].get(name, 0) + amount
    return FairShares(root, totals_of(usage), usage=usage), leaves[-1], held


def main() -> None:
    """Measure, check that both ways give the same shares, and print."""
    jobs = Jobs()
    gc.collect()
    gc.freeze()
    print("| what | CPU ms |\n|---|---|")
    print(f"| a job takes or gives back, then who is next? | {cpu_ms(jobs.one_event, repeats=5_000):.3f} |", flush=True)
    print(f"| a class becomes exhausted, or free again | {cpu_ms(jobs.exhaust_and_free, repeats=5) / 2:,.0f} |")
    print(f"| full recomputation | {cpu_ms(jobs.anew, repeats=3):,.0f} |", flush=True)
    assert jobs.shares.nodes() == jobs.anew().nodes()
    for name, sizes in SIZES.items():
        shares, claimant, held = allocations(sizes)
        for claim, task in CLAIMS.items():
            for way, ask in (
                ("reclaim", partial(reclaim, shares, claimant, task, held=held)),
                ("preempt", partial(reclaim, shares, claimant, task, priority=PRIORITY, held=held)),
            ):
                assert ask().feasible
                print(f"| who gives back {claim}, {name}: {way} | {cpu_ms(ask, repeats=3):,.0f} |", flush=True)


if __name__ == "__main__":
    main()

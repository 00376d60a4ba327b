"""The cloud and its jobs: servers as provider trees, what is in use on them, and the trees that the search is given.

A server with GPUs has two NUMA nodes with two PCIe switches each, and two GPUs per switch. The root has the VCPUs and
memory: 8 VCPUs per GPU, so that all GPUs are usable, but only if nothing else takes the VCPUs. A seed always gives the
same jobs.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from placement.candidates.tree_reader import Layout
from placement.cloud.providers import NO_PARENT, Flags, ProviderColumns
from placement.domain.search_plan import CandidateRequest, Choice, Plan, RequestGroup
from placement.domain.tree import Tree

VCPUS_PER_GPU = 8
MB_PER_VCPU = 4096
GPUS_PER_SWITCH = 2
VCPUS = 64
NUMA_NODES, SWITCHES_PER_NODE = 2, 2
LEVELS = ("HW_NUMA_ROOT", "CUSTOM_HW_PCIE_SWITCH")

Demands = tuple[tuple[tuple[str, int], ...], ...]
"""What each slot of a plan asks for, which distinguishes the simulation's plans."""

Sums = tuple[int, ...]
"""A tree's root, then its capacities and then its usages of some classes."""

JOB_GPUS = 4
"""GPUs count as stranded if they are useless to a job of this many GPUs."""


@dataclass(frozen=True, slots=True)
class SimulatedServer:
    """A server with its providers by id; ``levels`` flags the NUMA nodes, then the switches.

    Capacities are by (provider, resource class).
    """

    root: int
    providers: ProviderColumns
    switches: Sequence[int]
    levels: Sequence[Flags]
    capacities: Mapping[tuple[int, str], int]

    @property
    def classes(self) -> dict[str, list[int]]:
        """The providers of each class."""
        providers: dict[str, list[int]] = {}
        for provider, name in self.capacities:
            providers.setdefault(name, []).append(provider)
        return providers


def plain_server(root: int) -> SimulatedServer:
    """Return a server without GPUs; its only id is the root's."""
    return _server(root, numa_nodes=0)


def gpu_server(root: int) -> SimulatedServer:
    """Return a server with GPUs; its ids count up from the root's."""
    return _server(root, numa_nodes=NUMA_NODES)


def _server(root: int, *, numa_nodes: int) -> SimulatedServer:
    parents, nodes, switches = {root: NO_PARENT}, list[int](), list[int]()
    for _node in range(numa_nodes):
        nodes.append(root + len(parents))
        parents[nodes[-1]] = root
        for _switch in range(SWITCHES_PER_NODE):
            switches.append(root + len(parents))
            parents[switches[-1]] = nodes[-1]
    capacities = {(root, "VCPU"): VCPUS, (root, "MEMORY_MB"): VCPUS * MB_PER_VCPU}
    capacities |= {(switch, "PGPU"): GPUS_PER_SWITCH for switch in switches}
    ids = np.array([*parents], dtype=np.int64)
    providers = ProviderColumns.sorted_from(np.full(len(ids), root), ids, np.array([*parents.values()]))
    return SimulatedServer(root, providers, switches, [np.isin(ids, nodes), np.isin(ids, switches)], capacities)


def servers(seed: int, *, plain: int, with_gpus: int) -> list[SimulatedServer]:
    """Return servers of both kinds in random order, as racks are filled over the years."""
    makers = [plain_server] * plain + [gpu_server] * with_gpus
    random.Random(seed).shuffle(makers)  # noqa: S311 - a simulation, not a secret
    made: list[SimulatedServer] = []
    following = 1
    for make in makers:
        made.append(make(following))
        following += len(made[-1].providers.ids)
    return made


@dataclass(slots=True)
class Standing:
    """A server and what is free on it.

    Answers to the search are cached until the server changes: each job changes one server of hundreds.
    """

    server: SimulatedServer
    free: dict[tuple[int, str], int]
    providers: Mapping[str, Sequence[int]]
    used: dict[str, int]
    capacity: dict[str, int]
    trees: dict[Demands, Tree | None] = field(default_factory=dict)
    sums: dict[tuple[str, ...], Sums] = field(default_factory=dict)

    def tree(self, plan: Plan, demands: Demands) -> Tree | None:
        """Return the tree with the providers that can serve each demand of a plan, or None if a demand has none."""
        if demands not in self.trees:
            self.trees[demands] = self._tree(plan)
        return self.trees[demands]

    def sums_of(self, classes: tuple[str, ...]) -> Sums:
        """Return the root, then the tree's capacity and then its usage of each class."""
        if classes not in self.sums:
            capacity = [self.capacity.get(name, 0) for name in classes]
            used = [self.used.get(name, 0) for name in classes]
            self.sums[classes] = (self.server.root, *capacity, *used)
        return self.sums[classes]

    def _tree(self, plan: Plan) -> Tree | None:
        options = []
        for demand in plan.demands:
            (first, _amount), *_more = demand.resources
            fitting = [provider for provider in self.providers.get(first, ()) if self._fits(provider, demand.resources)]
            if not fitting:
                return None
            options.append(fitting)
        tree = Tree(self.server.root, options)
        if self.server.switches:
            self._add_places(tree, plan)
        return tree

    def _add_places(self, tree: Tree, plan: Plan) -> None:
        fits, server = self._fits_on(plan, tree.options), self.server
        at = server.providers.positions(sorted(fits))
        layout = Layout(server.providers, at, server.levels)
        tree.lay_out(layout.places, layout.around(np.array([fits[provider] for provider in sorted(fits)])))

    def take(self, provider: int, name: str, amount: int) -> None:
        """Take an amount of a class from a provider, or give it back if negative."""
        self.free[provider, name] -= amount
        self.used[name] += amount
        self.trees.clear()
        self.sums.clear()

    @property
    def stranded_gpus(self) -> int:
        """How many free GPUs a job of ``JOB_GPUS`` cannot use."""
        free = [self.free[switch, "PGPU"] for switch in self.server.switches]
        whole = sum(room == GPUS_PER_SWITCH for room in free)
        jobs = min(
            whole // (JOB_GPUS // GPUS_PER_SWITCH), self.free[self.server.root, "VCPU"] // (JOB_GPUS * VCPUS_PER_GPU)
        )
        return sum(free) - JOB_GPUS * jobs

    def _fits(self, provider: int, resources: Sequence[tuple[str, int]]) -> bool:
        free = self.free
        return all(amount <= free.get((provider, name), 0) for name, amount in resources)

    def _fits_on(self, plan: Plan, options: Sequence[Sequence[int]]) -> Mapping[int, float]:
        """Return how many times each provider can serve what is asked of it, summed over demands and classes."""
        fits: dict[int, float] = defaultdict(float)
        for demand, providers in zip(plan.demands, options, strict=True):
            for provider in providers:
                fits[provider] += sum(self.free[provider, name] / amount for name, amount in demand.resources)
        return fits


class Cloud:
    """Servers and what runs on them."""

    def __init__(self, made: Sequence[SimulatedServer]) -> None:
        self.servers = {server.root: _empty(server) for server in made}

    def trees(self, plan: Plan) -> list[Tree]:
        """Return the trees that can serve every demand of a plan, by id."""
        demands = tuple(slot.resources for slot in plan.slots)
        trees = [standing.tree(plan, demands) for standing in self.servers.values()]
        return [tree for tree in trees if tree is not None]

    def sums(self, roots: Iterable[int], classes: tuple[str, ...]) -> list[Sums]:
        """Return each tree's root, then its capacity and then its usage of each class."""
        return [self.servers[root].sums_of(classes) for root in roots]

    def place(self, plan: Plan, root: int, choice: Choice, *, sign: int = 1) -> None:
        """Allocate what a candidate takes; with a sign of -1, release it."""
        standing = self.servers[root]
        for slot, provider in zip(plan.slots, choice, strict=True):
            for name, amount in slot.resources:
                standing.take(provider, name, sign * amount)

    @property
    def stranded_gpus(self) -> int:
        """How many free GPUs no job of ``JOB_GPUS`` can use."""
        return sum(standing.stranded_gpus for standing in self.servers.values())

    @property
    def used_gpus(self) -> int:
        """How many GPUs are in use."""
        return sum(standing.used.get("PGPU", 0) for standing in self.servers.values())

    def total(self, name: str, *, with_gpus: bool) -> int:
        """Return how much of a class there is on servers with, or without, GPUs."""
        chosen = [standing for standing in self.servers.values() if bool(standing.server.switches) is with_gpus]
        return sum(standing.capacity.get(name, 0) for standing in chosen)


def _empty(server: SimulatedServer) -> Standing:
    capacity: dict[str, int] = {}
    for (_provider, name), amount in server.capacities.items():
        capacity[name] = capacity.get(name, 0) + amount
    return Standing(server, dict(server.capacities), server.classes, dict.fromkeys(capacity, 0), capacity)


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

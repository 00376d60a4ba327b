"""What ``tests.bench`` measures, and the bars: each case is some work, mostly beside other work or another server."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from random import choice
from typing import NamedTuple

from tests.bench.sides import Order, Server
from tests.bench.work import (
    PLANNER,
    Body,
    Get,
    Post,
    Work,
    candidates,
    claim_and_free,
    get_and_put,
    in_turn,
    of_provider,
    planner_claim,
    register,
    score_all,
)


class Bar(NamedTuple):
    """The bound of a number: a minimum, or a maximum."""

    value: float
    is_minimum: bool = True

    def is_met(self, measured: float) -> bool:
        """Tell whether a number is within the bound."""
        return measured >= self.value if self.is_minimum else measured <= self.value


class Task(NamedTuple):
    """Some work on a server."""

    server: Server
    work: Work


@dataclass(frozen=True, slots=True)
class Case:
    """A task, and mostly another one to compare with.

    Args:
        section: the heading of the table.
        name: what is done.
        task: what is measured.
        other: what it is compared with.
        times: bounds how many times as much CPU time the other task takes, or how many times as often this one is done.
        cpu_ms: bounds the CPU time of the task.
        clients: how many clients do it at the same time.
        is_rate: whether clients do it as often as they can, for some seconds.
        expected: how many candidates there are.
        is_tried_once: whether the other task is known to take too long.
    """

    section: str
    name: str
    task: Task
    other: Task | None = None
    times: Bar | None = None
    cpu_ms: Bar | None = None
    clients: int = 1
    is_rate: bool = False
    expected: int | None = None
    is_tried_once: bool = False

    def __str__(self) -> str:
        """Return what it is selected by."""
        return f"{self.section}: {self.task.server}: {self.name}"


SMALL = "VCPU:1,MEMORY_MB:512"
SIMPLE = f"resources={SMALL},DISK_GB:10"
"""Three classes in the unsuffixed group: served by one provider on flat clouds, by any of a tree on others."""

GATE = (
    "resources=DISK_GB:10&required=COMPUTE_VOLUME_MULTI_ATTACH"
    f"&resources_COMPUTE={SMALL}&required_COMPUTE=HW_NUMA_ROOT"
    "&resources_NIC=SRIOV_NET_VF:1&required_NIC=HW_NIC_OFFLOAD_GENEVE"
    "&group_policy=none&same_subtree=_COMPUTE,_NIC"
)
"""The query for nested trees from openstack-placement's own performance job, with NICs in place of its FPGAs."""

GATE_WITHOUT_NICS = GATE.replace("HW_NIC_OFFLOAD_GENEVE", "HW_NIC_OFFLOAD_QINQ")
"""The same with a trait that no NIC has, so that every tree lacks exactly one thing."""

CROWDED_NODES = "&".join(f"resources_N{number}=VCPU:10" for number in range(3)) + "&group_policy=none"
"""More than two NUMA nodes that are 60 % full can serve: every tree is searched without finding a candidate."""

NUMA_AND_GPU = f"resources_NUMA={SMALL}&resources_GPU=PGPU:1&group_policy=none&same_subtree=_NUMA,_GPU"
TWO_GPUS_AND_NIC = (
    "resources=DISK_GB:10&resources_GPU1=PGPU:1&resources_GPU2=PGPU:1&resources_NIC=SRIOV_NET_VF:1&group_policy=isolate"
)
SCORED = {
    "flat-1000": "resources=VCPU:4,MEMORY_MB:1024,DISK_GB:10",
    "numa-gpu-1000": "resources=DISK_GB:1&resources1=VCPU:4,MEMORY_MB:1024&resources2=PGPU:1&group_policy=none",
}
ON_FLAT = {"host500": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10}}
ON_NESTED = {
    "host500": {"DISK_GB": 10},
    "host500-numa0": {"VCPU": 1, "MEMORY_MB": 512},
    "host500-numa0-pf0": {"SRIOV_NET_VF": 1},
}
FLAVOR = {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 20}
FLAVOR_QUERY = "resources=" + ",".join(f"{name}:{amount}" for name, amount in FLAVOR.items())
SMALL_CLAIM: Body = {"groups": {"": {"resources": FLAVOR}}}
GPU_AND_NIC: Body = {
    "groups": {"_GPU": {"resources": {"PGPU": 1}}, "_NIC": {"resources": {"SRIOV_NET_VF": 1}}},
    "affinity": [{"groups": ["_GPU", "_NIC"], "level": "pcie"}],
}
BEST = Order.BEST_FIRST


def device_query(groups: int) -> str:
    """Return a request for so many devices, each in its own group."""
    return "&".join(f"resources_D{number}=PGPU:1" for number in range(groups)) + "&group_policy=isolate"


def pair_query(pairs: int) -> str:
    """Return a request for GPUs, each with a NIC on its switch."""
    parts = [
        f"required_S{n}=CUSTOM_HW_PCIE_SWITCH&resources_G{n}=PGPU:1&resources_N{n}=SRIOV_NET_VF:1"
        f"&same_subtree=_S{n},_G{n},_N{n}"
        for n in range(pairs)
    ]
    return "&".join([*parts, "group_policy=isolate"])


def all_cases() -> Iterator[Case]:
    """Yield every case, those of one cloud together where possible."""
    yield from _candidates()
    yield from _impossible()
    yield from _single_resources()
    yield from _claims()
    yield from _headroom()
    yield from _own_costs()
    yield from _planner()


def _beside_reference(section: str, name: str, server: Server, work: Work, **more: object) -> Case:
    """Return the same work here and on openstack-placement, which has no order of candidates."""
    theirs = Task(replace(server, is_reference=True, order=Order.NONE), work)
    return Case(section, name, Task(server, work), theirs, **more)  # type: ignore[arg-type]


def _candidates() -> Iterator[Case]:
    few, many, ordered = Bar(60), Bar(7), Bar(15)
    rows: tuple[tuple[Server, str, str, dict[int | None, Bar | None]], ...] = (
        (Server("flat-1000"), "3 classes", SIMPLE, {10: None, 1000: many}),
        (Server("flat-10000"), "3 classes", SIMPLE, {10: Bar(100)}),
        (Server("flat-10000", order=BEST), "3 classes", SIMPLE, {10: ordered}),
        (Server("nested-1000"), "three groups", GATE, {10: few, 1000: many, None: many}),
        (Server("nested-1000"), "3 classes", SIMPLE, {10: None, None: None}),
        (Server("nested-1000", order=BEST), "three groups", GATE, {10: ordered, None: Bar(12)}),
        (Server("nested-1000", order=BEST), "3 classes", SIMPLE, {10: ordered, None: Bar(12)}),
        (Server("nested-10000"), "three groups", GATE, {10: None}),
        (Server("numa-gpu-1000"), "NUMA + GPU, same_subtree", NUMA_AND_GPU, {10: few, None: None}),
        (Server("numa-gpu-1000"), "2 GPUs + NIC, isolate", TWO_GPUS_AND_NIC, {10: few, None: Bar(8)}),
        (Server("numa-gpu-1000", order=BEST), "2 GPUs + NIC, isolate", TWO_GPUS_AND_NIC, {10: ordered}),
        (Server("shared-1000"), "3 classes", SIMPLE, {10: None, None: None}),
        (Server("nested-1000", 0.0), "three groups", GATE, {10: None, None: None}),
    )
    for server, name, query, bars in rows:
        for limit, bar in bars.items():
            text = f"{name}, limit={limit}" if limit else f"{name}, no limit"
            yield _beside_reference(
                "The same requests on both", text, server, candidates(query, limit=limit), times=bar
            )
    changed = in_turn(claim_and_free(ON_NESTED), candidates(GATE))
    ordered_cloud = Server("nested-1000", order=BEST)
    yield _beside_reference(
        "The same requests on both", "PUT + DELETE, then three groups", ordered_cloud, changed, times=Bar(12)
    )


def _impossible() -> Iterator[Case]:
    """Yield requests that openstack-placement cannot finish."""
    fast, faster = Bar(200, is_minimum=False), Bar(100, is_minimum=False)
    for cloud, name, query, limit, expected, bar in (
        ("wide-8", "8 groups, isolate", device_query(8), 1000, 1000, fast),
        ("wide-8", "9 groups, isolate", device_query(9), 1000, 0, fast),
        ("wide-16", "16 groups, isolate", device_query(16), 1000, 1000, fast),
        ("pcie-8", "3 GPU + NIC pairs", pair_query(3), None, 336, faster),
    ):
        yield _beside_reference(
            "Requests that openstack-placement does not finish",
            f"{name}, limit={limit}",
            Server(cloud, 0.0),
            candidates(query, limit=limit),
            cpu_ms=bar,
            expected=expected,
            is_tried_once=True,
        )


def _single_resources() -> Iterator[Case]:
    section, flat, writes = "Single resources", Server("flat-1000"), Bar(4)
    for what in ("inventories", "usages", "allocations", "aggregates", "traits"):
        yield _beside_reference(section, f"GET {what} of one", flat, of_provider("host500", what), times=Bar(3))
    yield _beside_reference(section, "PUT + DELETE allocation", flat, claim_and_free(ON_FLAT), times=writes)
    yield _beside_reference(section, "register a provider, inventories, traits", flat, register, times=writes)
    yield _beside_reference(
        section, "PUT + DELETE allocation", Server("nested-1000"), claim_and_free(ON_NESTED), times=writes
    )


def _claims() -> Iterator[Case]:
    section, nested = "Clients that ask and claim", Server("nested-1000")
    for clients in (1, 4, 8):
        name, work = f"GET + PUT, {clients} clients", get_and_put(GATE)
        yield _beside_reference(section, name, nested, work, clients=clients, is_rate=True, times=Bar(20))
    first = get_and_put(GATE, choose=itemgetter(0))
    at_random, unordered = Task(replace(nested, order=Order.SPREAD), first), Task(nested, first)
    name = "GET + PUT of the first, 32 clients, beside unordered"
    yield Case(section, name, at_random, unordered, clients=32, is_rate=True, times=Bar(1))
    by_nova = get_and_put(FLAVOR_QUERY, limit=1000, choose=lambda offered: choice(offered[:10]))
    for name, work, cloud, clients in (
        ("a gang of 1,000 equal members", planner_claim({**SMALL_CLAIM, "members": 1000}), "flat-5000", 1),
        (
            "gangs of 8 GPUs, each with a NIC on its switch",
            planner_claim({**GPU_AND_NIC, "members": 8}),
            "devices-500",
            4,
        ),
        ("planner claims", planner_claim(SMALL_CLAIM), "flat-5000", 32),
        ("GET + PUT with nova's query", by_nova, "flat-5000", 32),
    ):
        task = Task(Server(cloud, 0.0, order=BEST, threads=16), work)
        yield Case(section, f"{name}, {clients} clients", task, clients=clients, is_rate=True)


def flavors(cloud: str) -> list[str]:
    """Return fifty flavors: on flat hosts of three classes, on others with GPUs in several ways."""
    if cloud.startswith("flat"):
        return [f"resources=VCPU:{1 + n % 16},MEMORY_MB:{1024 * (1 + n)},DISK_GB:{10 * (1 + n % 7)}" for n in range(50)]
    queries = []
    for number in range(50):
        cores = 1 + number % 8
        node = f"resources_C=VCPU:{cores},MEMORY_MB:{cores * 4096}"
        two = "resources_G=PGPU:1&resources_H=PGPU:1"
        isolated = "&".join(f"resources_{gpu}=PGPU:1" for gpu in range(1 + number % 3))
        forms = (
            f"resources=VCPU:{cores},MEMORY_MB:{cores * 2048},PGPU:1,DISK_GB:{10 + number}",
            f"{node}&resources_G=PGPU:1&same_subtree=_C,_G&group_policy=none&resources=DISK_GB:{10 + number}",
            f"{isolated}&group_policy=isolate&resources=VCPU:{cores}",
            f"{node}&{two}&resources_N=SRIOV_NET_VF:1&same_subtree=_C,_G,_H,_N&group_policy=isolate",
            f"resources_A=VCPU:{cores}&resources_B=VCPU:{cores + 2}&group_policy=isolate&resources_G=PGPU:1",
        )
        queries.append(forms[number % len(forms)])
    return queries


def _headroom() -> Iterator[Case]:
    """Yield the headroom of fifty flavors in one request, and what exporters ask openstack-placement instead."""
    for cloud, has_other in (
        ("flat-1000", True),
        ("numa-gpu-100", True),
        ("flat-10000", False),
        ("numa-gpu-1000", False),
    ):
        queries, server = flavors(cloud), Server(cloud)
        body = {"requests": {str(number): query for number, query in enumerate(queries)}}
        each = in_turn(*[candidates(query, limit=1000) for query in queries])
        other = Task(replace(server, is_reference=True), each) if has_other else None
        task = Task(server, Post(f"{PLANNER}/headroom", body))
        yield Case("Headroom", "50 flavors, or 50 GETs", task, other, is_tried_once=True)


def _own_costs() -> Iterator[Case]:
    """Yield work that must not cost much more than other work."""
    section = "Growth, order, journal, explanations"
    for cloud, query in (("flat", SIMPLE), ("nested", GATE)):
        thousand, few, every = Server(f"{cloud}-1000"), candidates(query, limit=10), candidates(query)
        ordered, empty = replace(thousand, order=BEST), replace(thousand, fill=0.0)
        for name, base, more, work, at_most in (
            ("10,000 hosts to 1,000, limit=10", thousand, replace(thousand, cloud=f"{cloud}-10000"), few, 1.5),
            ("60 % full to empty, limit=10", empty, thousand, few, 1.2),
            ("60 % full to empty, no limit", empty, thousand, every, 1.2),
            ("best first to unordered, no limit", thousand, ordered, every, 1.3),
        ):
            yield _growth(section, name, Task(base, work), Task(more, work), at_most)
    nested = Server("nested-1000")
    for name, query in (("trait", GATE_WITHOUT_NICS), ("room", CROWDED_NODES)):
        tasks = Task(nested, candidates(query)), Task(nested, Get(f"{PLANNER}/explain?{query}"))
        yield _growth(section, f"explanation to query, nothing found for want of {name}", *tasks, 2)
    wide = [Task(Server("wide-8", 0.0), candidates(device_query(groups), limit=1000)) for groups in (8, 9)]
    yield _growth(section, "9 groups (impossible) to 8", wide[0], wide[1], 1)
    kept = Server("flat-1000", 0.0)
    for name, write in (
        ("PUT + DELETE", claim_and_free(ON_FLAT)),
        ("GET + PUT", get_and_put(SIMPLE)),
        ("planner claim", planner_claim({"groups": {"": {"resources": ON_FLAT["host500"]}}})),
    ):
        without = Task(replace(kept, keeps_journal=False), write)
        yield _growth(section, f"{name}, with the journal to without", without, Task(kept, write), None)


def _growth(section: str, name: str, base: Task, more: Task, at_most: float | None) -> Case:
    """Return a case whose ratio says how many times as much a task costs as its base."""
    bar = None if at_most is None else Bar(at_most, is_minimum=False)
    return Case(section, name, base, more, times=bar)


def _planner() -> Iterator[Case]:
    section, hosts = "The planner", Server("devices-1000", 0.0, order=BEST)
    for pairs in (1, 4, 8):
        groups = {
            "_GPU": {"resources": {"PGPU": 1}, "count": pairs},
            "_NIC": {"resources": {"SRIOV_NET_VF": 1}, "count": "per-subtree"},
        }
        body = {"groups": groups, "affinity": [{"groups": ["_GPU", "_NIC"], "level": "pcie"}], "limit": 10}
        plain = Task(hosts, candidates(pair_query(pairs), limit=10))
        yield Case(
            section,
            f"{pairs} GPU + NIC pairs to the plain form",
            Task(hosts, Post(f"{PLANNER}/candidates", body)),
            plain,
        )
    single, gang = (Task(hosts, planner_claim({**GPU_AND_NIC, **more})) for more in ({}, {"members": 64}))
    yield Case(section, "a member of a gang of 64, GPU and NIC each, to a single claim", single, gang)
    for cloud, query in SCORED.items():
        task = Task(Server(cloud, 0.3, order=BEST), score_all(query))
        yield Case(section, "scores of the best candidate of each host", task, cpu_ms=Bar(15, is_minimum=False))

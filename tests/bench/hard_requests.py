"""Requests as hard as a client can make them, for ``tests.bench.costly``: for the planner, and on clouds with pools.

Each kind of query once took many seconds to answer; its amounts and conditions are drawn at random.
"""

import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.clouds import FEATURES, POOLS
from tests.bench.rows import provider_uuid

AMOUNTS = {
    "VCPU": (1, 1, 2, 3, 5),
    "MEMORY_MB": (1, 1024),
    "DISK_GB": (1, 10),
    "PGPU": (1,),
    "SRIOV_NET_VF": (1, 2, 3, 5),
}
DEVICES = ("PGPU", "PGPU", "SRIOV_NET_VF", "SRIOV_NET_VF", "VCPU")
TRAITS = ("HW_NUMA_ROOT", "CUSTOM_GPU_A100", "HW_NIC_SRIOV", "CUSTOM_HW_PCIE_SWITCH")
LEVELS = ("numa", "numa", "numa", "pcie", "pcie", "HW_NIC_SRIOV")
GROUPS = (1, 2, 2, 3, 3, 4, 4, 6, 8, 12, 16, 24)
COUNTS = (1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4)
OWNER = {"project_id": "project", "user_id": "user", "consumer_type": "INSTANCE"}

Body = dict[str, Any]


def plan(choice: random.Random) -> Body:
    """Return the body of a request for candidates."""
    body = _nested(choice) if choice.random() < 0.15 else _groups(choice)
    body |= {"limit": choice.choice((1, 10, 1000)), "per_tree": choice.choice((1, 1, 3, 20))}
    return body | ({"explain": True} if choice.random() < 0.2 else {})


def claim(choice: random.Random) -> Body:
    """Return the body of a claim; one in three is for a gang."""
    body = _nested(choice) if choice.random() < 0.15 else _groups(choice)
    holder = {"uuid": str(uuid.UUID(int=choice.getrandbits(128))), **OWNER}
    return {**body, "consumer": holder} | ({"members": choice.choice((2, 8, 64))} if choice.random() < 0.33 else {})


def _groups(choice: random.Random) -> Body:
    names = [f"_G{number}" for number in range(choice.choice(GROUPS))]
    alike, first = choice.random() < 0.4, _group(choice)
    groups = {name: {**first} if alike else _group(choice) for name in names}
    body: Body = {"groups": groups, "group_policy": choice.choice(("none", "isolate"))}
    if choice.random() < 0.3:
        groups[""] = {"resources": {"VCPU": 4, "MEMORY_MB": 1024}}
    if len(names) > 1 and choice.random() < 0.4:
        body["affinity"] = [_affinity(choice, names, groups)]
    if choice.random() < 0.4:
        body["within"] = [_rule(choice, names) for _ in range(choice.choice((1, 2, 4)))]
    if choice.random() < 0.2:
        body["exclusive"] = [{"groups": _some(choice, names), "level": choice.choice((*LEVELS, "device"))}]
    if choice.random() < 0.2:
        body["same_subtree"] = [_tied(choice, names, groups) for _ in range(choice.choice((1, 1, 2, 4)))]
    return body


def _group(choice: random.Random) -> Body:
    names = [choice.choice(DEVICES)] if choice.random() < 0.95 else choice.sample(list(AMOUNTS), 2)
    group: Body = {"resources": {name: choice.choice(AMOUNTS[name]) for name in names}, "count": choice.choice(COUNTS)}
    if choice.random() < 0.1:
        group["required"] = [choice.choice(("", "!")) + choice.choice(TRAITS)]
    elif "SRIOV_NET_VF" in names and choice.random() < 0.3:
        group |= {"vf_selector": [], "selector": ["!CUSTOM_GPU_A100"]}
    return group


def _some(choice: random.Random, names: list[str]) -> list[str]:
    return choice.sample(names, min(len(names), choice.choice((1, 2, 2, 3, 6))))


def _rule(choice: random.Random, names: list[str]) -> Body:
    return {"groups": _some(choice, names), "level": choice.choice(LEVELS), "mode": _mode(choice)}


def _mode(choice: random.Random) -> str:
    return choice.choice(("required", "preferred", "preferred"))


def _affinity(choice: random.Random, names: list[str], groups: dict[str, Body]) -> Body:
    primary, *others = choice.sample(names, min(len(names), choice.choice((2, 2, 3, 6))))
    for name in others:
        if choice.random() < 0.4:
            groups[name]["count"] = "per-subtree"
    return {"groups": [primary, *others], "primary": primary, "level": choice.choice(LEVELS), "mode": _mode(choice)}


def _tied(choice: random.Random, names: list[str], groups: dict[str, Body]) -> list[str]:
    head = f"_H{len(groups)}"
    groups[head] = {"required": [choice.choice(TRAITS)]}
    return [head, *_some(choice, names)]


def _nested(choice: random.Random) -> Body:
    """Return nested groups: NUMA nodes and switches with devices."""
    paths = {}
    for node in range(choice.choice((1, 2, 4, 8, 16))):
        outer = f"numa/{node}/" if choice.random() < 0.7 else ""
        for device in range(choice.choice((1, 1, 2, 4, 8))):
            inside = f"pcie/{node}.{device}/" if choice.random() < 0.5 or not outer else ""
            name = choice.choice(("SRIOV_NET_VF", "SRIOV_NET_VF", "PGPU"))
            paths[f"{outer}{inside}{name}"] = choice.choice(AMOUNTS[name])
        if outer and choice.random() < 0.3:
            paths[f"{outer}VCPU"] = choice.choice(AMOUNTS["VCPU"])
    return {"paths": paths, "distinct": choice.random() < 0.5}


AGGREGATE_UUIDS = [provider_uuid(f"aggregate{number}") for number in range(POOLS)]


def on_pools(choice: random.Random) -> str:
    """Return a query of one kind, with a typical limit or without one."""
    parts = [*choice.choice(KINDS)(choice)]
    if choice.random() < 0.3:
        parts += _of_everything(choice)
    parts.append(f"group_policy={choice.choice(('none', 'isolate'))}")
    return "&".join(parts + ([f"limit={choice.choice((1, 10, 400, 1000))}"] if choice.random() < 0.9 else []))


def _equal_groups(choice: random.Random) -> Iterator[str]:
    """Equal groups for a class that only pools have."""
    yield from _alike("P", choice.randint(2, 8), "IPV4_ADDRESS:1")


def _tied_groups(choice: random.Random) -> Iterator[str]:
    """Equal groups with same_subtree, either on two of them or on two groups for the host."""
    yield from _alike("P", choice.randint(2, 6), "IPV4_ADDRESS:1")
    if choice.random() < 0.5:
        yield "same_subtree=_P0,_P1"
    else:
        yield from _alike("H", 2, choice.choice(("VCPU:1", "SRIOV_NET_VF:1")))
        yield "same_subtree=_H0,_H1"


def _too_large_for_two(choice: random.Random) -> Iterator[str]:
    """Groups of which a pool can serve only one: usually there are no candidates."""
    yield from _alike("D", choice.randint(2, 3), f"DISK_GB:{choice.choice((900, 1100, 1500))}")


def _beside_pools(choice: random.Random) -> Iterator[str]:
    """Groups that barely fit on the host, beside many on pools."""
    yield f"resources_VF=SRIOV_NET_VF:{choice.choice((1, 4, 5))}"
    yield "required_VF=" + choice.choice(("HW_NIC_SRIOV", "HW_NIC_OFFLOAD_GENEVE"))
    yield from _alike("P", choice.randint(3, 6), "IPV4_ADDRESS:1")


def _long_lists(choice: random.Random) -> Iterator[str]:
    """Membership in any of hundreds of aggregates, several times."""
    yield "resources=VCPU:1"
    yield from _alike("P", choice.randint(1, 3), choice.choice(("IPV4_ADDRESS:1", "DISK_GB:10")))
    for suffix in ("", "_P0"):
        for _ in range(choice.randint(1, 3)):
            yield f"member_of{suffix}=in:" + ",".join(choice.sample(AGGREGATE_UUIDS, choice.choice((50, 199, 200))))


def _prohibited(choice: random.Random) -> Iterator[str]:
    """Many forbidden traits, some of which all hosts have."""
    yield "resources=VCPU:1,IPV4_ADDRESS:1"
    yield "required=" + ",".join(f"!{name}" for name in choice.sample(FEATURES, choice.randint(1, 20)))
    yield from _alike("P", choice.randint(0, 3), choice.choice(("IPV4_ADDRESS:1", "VCPU:1")))


def _of_everything(choice: random.Random) -> Iterator[str]:
    yield "resources=" + choice.choice(("VCPU:1", "VCPU:1,MEMORY_MB:1024", "DISK_GB:10", "IPV4_ADDRESS:2"))
    if choice.random() < 0.5:
        yield "required=" + ",".join(choice.sample(FEATURES, choice.randint(1, 4)))


def _alike(prefix: str, count: int, resources: str) -> Iterator[str]:
    for number in range(count):
        yield f"resources_{prefix}{number}={resources}"


KINDS: tuple[Callable[[random.Random], Iterator[str]], ...] = (
    _equal_groups,
    _tied_groups,
    _too_large_for_two,
    _beside_pools,
    _long_lists,
    _prohibited,
)

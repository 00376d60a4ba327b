"""Planner requests as hard as a client can make them, for ``tests.bench.costly``."""

import random
import uuid
from typing import Any

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

"""Bodies for the planner: requests in its own terms and in Koordinator's, claims, and waiting tasks for fair shares."""

import random
from collections.abc import Mapping
from typing import Any

GROUPS = ("", "_A", "_B", "_GPU", "_NIC")
CLASSES = ("VCPU", "MEMORY_MB", "PGPU", "SRIOV_NET_VF", "CUSTOM_GOLD")
SHARED_FAIRLY = ("VCPU", "MEMORY_MB")
COUNTS = (1, 2, 4, 8, 12, "all")
LEVELS = ("numa", "numa", "pcie", "HW_NUMA_ROOT", "nothing")
DEVICES = ("nvidia.com/gpu", "nvidia.com/gpu", "gpu", "rdma", "unheard.of/it")


def planner_body(choice: random.Random, path: str, generations: Mapping[str, int | None]) -> dict[str, Any]:
    """Return a valid body for one of the planner's paths, and for consumers of these generations."""
    if "/fair-share/" in path:
        return _fair_share(choice, path)
    body = _own_words(choice) if choice.random() < 0.7 else _words_of_koordinator(choice)
    if path.endswith("/claims"):
        return {**body, **_holders(choice, generations)}
    return {**body, **some(choice, limit=choice.choice((1, 10, 1000)), per_tree=choice.choice((1, 3)), explain=True)}


def some(choice: random.Random, **members: Any) -> dict[str, Any]:
    """Return about a third of the members."""
    return {name: value for name, value in members.items() if choice.random() < 1 / 3}


def _own_words(choice: random.Random) -> dict[str, Any]:
    names = choice.sample(GROUPS, choice.choice((1, 1, 2, 3)))
    named = [name for name in names if name]
    body: dict[str, Any] = {"groups": {name: _group(choice, name) for name in names}}
    body |= some(choice, group_policy=choice.choice(("none", "isolate")), distinct=True, profile="default")
    if named:
        place = {"groups": named, "level": choice.choice(LEVELS)}
        body |= some(choice, within=[{**place, "mode": "required"}], exclusive=[place], same_subtree=[named])
    if len(named) > 1:
        joint = {"groups": named, "level": choice.choice(LEVELS), "mode": choice.choice(("required", "preferred"))}
        body |= some(choice, affinity=[joint | some(choice, primary=named[0])])
        if "affinity" in body and len(named) == 2 and "primary" in body["affinity"][0] and choice.random() < 0.5:
            body["groups"][named[1]] |= {"count": "per-subtree"} | some(choice, at_least=1)
    return body


def _group(choice: random.Random, name: str) -> dict[str, Any]:
    resources = {name: choice.choice((1, 1, 2, 50)) for name in choice.sample(CLASSES, choice.choice((1, 1, 2)))}
    counted = some(choice, count=choice.choice(COUNTS)) if name else {}
    traits = {"required": ["HW_NUMA_ROOT"], "selector": ["HW_NUMA_ROOT"], "vf_selector": []}
    return {"resources": resources} | counted | (some(choice, **traits) if choice.random() < 0.3 else {})


def _words_of_koordinator(choice: random.Random) -> dict[str, Any]:
    wanted = {name: choice.choice((1, 2, 4, 100)) for name in choice.sample(DEVICES, choice.choice((1, 1, 2)))}
    joint = {"deviceTypes": ["gpu", "rdma"]} | some(choice, requiredScope="SamePCIe")
    hint = {"vfSelector": {}} | some(
        choice,
        allocateStrategy=choice.choice(("ApplyForAll", "RequestsAsCount")),
        exclusivePolicy=choice.choice(("DeviceLevel", "PCIeLevel")),
    )
    return {"requests": wanted} | some(choice, device_joint_allocate=joint, device_allocate_hint={"rdma": hint})


def _holders(choice: random.Random, generations: Mapping[str, int | None]) -> dict[str, Any]:
    uuid, generation = choice.choice(list(generations.items()))
    consumer = {"uuid": uuid, "project_id": "project", "user_id": "user"}
    consumer |= {"consumer_type": "INSTANCE", "consumer_generation": generation}
    if choice.random() < 0.6:
        return {"consumer": consumer}
    return {"members": [{"consumer": consumer}]}


def _fair_share(choice: random.Random, path: str) -> dict[str, Any]:
    wish = {"project_id": "project", "resources": {choice.choice(SHARED_FAIRLY): choice.choice((1, 2**31 - 1))}}
    pending = {"pending": [wish | some(choice, count=choice.choice((1, 10_000)))]}
    return {"claimant": wish, **some(choice, **pending)} if path.endswith("/reclaim") else pending

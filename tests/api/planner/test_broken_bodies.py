"""Planner bodies with one thing broken: each gets an answer or a clear refusal."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, register

FAIR = "/planner/v1/fair-share"
WISH = {"project_id": "project", "resources": {"VCPU": 1}}
LABELS = {
    "matchLabels": {"type": "fakeW"},
    "matchExpressions": [{"key": "type", "operator": "In", "values": ["fakeW"]}],
}
HINT = {
    "selector": LABELS,
    "vfSelector": LABELS,
    "allocateStrategy": "RequestsAsCount",
    "exclusivePolicy": "PCIeLevel",
}
BODIES = {
    "groups": (
        CANDIDATES,
        {
            "groups": {
                "_G": {"resources": {"PGPU": 1}, "required": ["!HW_NUMA_ROOT"], "count": 2},
                "_V": {"resources": {"SRIOV_NET_VF": 1}, "vf_selector": [], "count": "per-subtree", "at_least": 1},
            },
            "group_policy": "none",
            "within": [{"groups": ["_G"], "level": "numa", "mode": "required"}],
            "affinity": [{"groups": ["_G", "_V"], "primary": "_G", "level": "pcie", "mode": "preferred"}],
            "exclusive": [{"groups": ["_G"], "level": "pcie"}],
            "same_subtree": [["_G", "_V"]],
            "root_required": ["!HW_NUMA_ROOT"],
            "limit": 3,
            "per_tree": 2,
            "profile": "default",
            "explain": True,
        },
    ),
    "paths": (CANDIDATES, {"paths": {"numa/0/pcie/0/PGPU": 1, "numa/0/VCPU": 2}, "distinct": True, "explain": True}),
    "tree": (CANDIDATES, {"tree": {"numa": {"0": {"VCPU": 1, "pcie": {"0": {"PGPU": 1}}}}}}),
    "devices": (
        CANDIDATES,
        {
            "requests": {"gpu": 1, "rdma": 1, "VCPU": 1},
            "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"},
            "device_allocate_hint": {"rdma": HINT},
        },
    ),
    "claim": (CLAIMS, {"groups": {"": {"resources": {"VCPU": 1}}}, "consumer": consumer()}),
    "members": (
        CLAIMS,
        {"members": [{"consumer": consumer(), "request": {"groups": {"": {"resources": {"VCPU": 1}}}}}]},
    ),
    "order": (f"{FAIR}/order", {"pending": [{**WISH, "count": 2}]}),
    "fill": (f"{FAIR}/fill", {"pending": [{**WISH, "count": 2}]}),
    "reclaim": (f"{FAIR}/reclaim", {"claimant": WISH, "pending": [WISH]}),
}
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e308, 2**70, "", "x", "\0", "É" * 300),
    *([], {}, [None], [[]], {"": None}, {"x": {}}, ["VCPU"], {"VCPU": "1"}),
)
Path = tuple[str | int, ...]


@pytest.mark.any_database
@pytest.mark.parametrize("name", BODIES)
def test_one_thing_broken_is_never_an_error_of_the_server(api: Api, name: str) -> None:
    register(api)
    path, body = BODIES[name]
    for where in filter(None, places(body)):
        for what, broken in changed(body, where):
            status = api.post(path, broken).status_code
            assert status < 500, (name, where, what)


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value in a document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def changed(body: dict[str, Any], where: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the body with one of its values removed, renamed or replaced."""
    for value in VALUES:
        broken, parent = copied(body, where)
        parent[where[-1]] = value
        yield repr(value), broken
    broken, parent = copied(body, where)
    gone = parent.pop(where[-1])
    yield "gone", broken
    if isinstance(parent, dict):
        parent["unknown"] = gone
        yield "misnamed", broken


def copied(body: dict[str, Any], where: Path) -> tuple[dict[str, Any], Any]:
    broken = copy.deepcopy(body)
    parent: Any = broken
    for key in where[:-1]:
        parent = parent[key]
    return broken, parent


def test_each_body_is_valid_as_long_as_nothing_is_broken(api: Api) -> None:
    register(api)
    for trait in ("CUSTOM_NIC_LABEL_TYPE_FAKEW",):
        ask(api, "PUT", f"/traits/{trait}")
    for path, body in BODIES.values():
        answer = api.post(path, body)
        assert answer.status_code in (200, 201), answer.text


def test_hundreds_of_different_amounts_are_refused(api: Api) -> None:
    register(api)
    body = {"paths": {f"numa/{number}/VCPU": number + 1 for number in range(300)}}
    answer = api.post(CANDIDATES, body)
    assert (answer.status_code, "more than 250 groups" in answer.text) == (400, True)


@pytest.mark.any_database
@pytest.mark.parametrize(("asked", "status"), [("placement x", 400), ("placement 1.x", 400), ("placement 9.99", 200)])
def test_what_is_no_microversion_is_refused_by_the_planner_too(api: Api, asked: str, status: int) -> None:
    answer = api.get("/planner/v1", headers={"openstack-api-version": asked})
    assert answer.status_code == status

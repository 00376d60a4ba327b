"""POST /planner/v1/candidates: the groups of a request, their places, many groups, and sharing providers."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import clouds
from tests.api.conftest import Api
from tests.claims import ask, change, detail_of, new_uuid
from tests.clouds import SHARES
from tests.planner_hosts import CANDIDATES, planned, provider, register, uuid_of
from tests.stored_clouds import stored

GPUS = {"resources": {"PGPU": 1}, "count": 4}
NICS = {"resources": {"SRIOV_NET_VF": 1}, "count": "per-subtree"}
JOINT = [{"groups": ["_GPU", "_NIC"], "primary": "_GPU", "level": "pcie"}]


def test_the_answer_has_the_shape_of_candidates_and_scores(api: Api) -> None:
    register(api)
    answer = ask(api, "POST", CANDIDATES, body={"groups": {"_GPU": GPUS, "_NIC": NICS}, "affinity": JOINT})
    assert sorted(answer) == ["allocation_requests", "complete", "provider_summaries", "scores", "searched"]
    assert (answer["complete"], answer["searched"]) == (True, 1)
    (score,) = answer["scores"]
    assert score["touched"] == {"numa": 1, "pcie": 2}
    plain = ask(api, "GET", "/allocation_candidates?resources=VCPU:1")
    assert answer["provider_summaries"] == plain["provider_summaries"]


def test_several_candidates_of_a_tree_come_on_request(api: Api) -> None:
    register(api)
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "per_tree": 3}
    names = [candidate["_GPU"] for candidate in planned(api, body)]
    assert names == [["host-gpu0", "host-gpu1"], ["host-gpu2", "host-gpu3"], ["host-gpu4", "host-gpu5"]]
    assert len(planned(api, {**body, "limit": 2})) == 2


def pair_on_switches(number: int) -> clouds.Provider:
    """Return a host with two GPUs: on a switch each, or behind risers of one switch on host80."""
    gpus = [clouds.provider(f"host{number}-gpu{n}", PGPU=1) for n in range(2)]
    below = [[gpu] for gpu in gpus]
    if number == 80:
        below = [[clouds.provider(f"host80-riser{n}", gpu) for n, gpu in enumerate(gpus)], []]
    switches = [
        clouds.provider(f"host{number}-pcie{n}", *of, traits=["CUSTOM_HW_PCIE_SWITCH"]) for n, of in enumerate(below)
    ]
    return clouds.provider(f"host{number}", *switches)


def test_the_best_of_many_hosts_is_found_and_some_are_not_looked_into(api: Api) -> None:
    """Only one host has two GPUs on a switch, and they are behind a riser."""
    stored(api.app, *map(pair_on_switches, range(90)))
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "limit": 2, "profile": {"compactness": {}}}
    assert planned(api, body) == [{"_GPU": ["host80-gpu0", "host80-gpu1"]}, {"_GPU": ["host0-gpu0", "host0-gpu1"]}]
    assert ask(api, "POST", CANDIDATES, body=body)["searched"] < 90


def test_the_only_host_of_many_is_found_and_nothing_is_composed_in_vain(api: Api) -> None:
    """On each of the others the GPUs are on different switches."""
    stored(api.app, *map(pair_on_switches, range(90)))
    groups = {"_S": {"required": ["CUSTOM_HW_PCIE_SWITCH"]}, "_A": {"resources": {"PGPU": 1}}}
    body = {"groups": {**groups, "_B": groups["_A"]}, "same_subtree": [["_S", "_A", "_B"]], "group_policy": "isolate"}
    assert planned(api, body) == [{"_S": ["host80-pcie0"], "_A": ["host80-gpu0"], "_B": ["host80-gpu1"]}]
    assert ask(api, "POST", CANDIDATES, body=body)["complete"]


def test_a_request_that_would_take_too_long_is_cut_off(api: Api) -> None:
    """Large amounts whose total exactly fills both nodes, but of which no subset exactly fills one."""
    amounts = [pow(7, number, 170_000_002) for number in range(30, 54)]
    register(api, numa_inventory={"VCPU": {"total": sum(amounts) // 2}})
    groups = {f"_{number}": {"resources": {"VCPU": amount}} for number, amount in enumerate(amounts)}
    assert "limit was reached" in detail_of(api.post(CANDIDATES, {"groups": groups}), 503)


def test_many_isolated_groups_are_served_as_fast_as_one_that_counts(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 7, "nics": 0}] * 2])
    groups = {f"_{number}": {"resources": {"PGPU": 1}} for number in range(14)}
    (candidate,) = planned(api, {"groups": groups, "group_policy": "isolate"})
    assert candidate == {f"_{number}": [f"host-gpu{number}"] for number in range(14)}
    assert planned(api, {"groups": {**groups, "_14": {"resources": {"PGPU": 1}}}, "group_policy": "isolate"}) == []


def test_many_devices_each_below_a_switch_of_its_own_are_found_at_once(api: Api) -> None:
    """The switches are not tried one by one: eight for each of six groups would be 262,144 ways."""
    register(api, numa_nodes=[[{"gpus": 1, "nics": 1}] * 4] * 2)
    groups: dict[str, dict] = {}
    for number in range(6):
        groups[f"_S{number}"] = {"required": ["CUSTOM_HW_PCIE_SWITCH"]}
        groups[f"_G{number}"] = {"resources": {"PGPU": 1}}
    ties = [[f"_S{number}", f"_G{number}"] for number in range(6)]
    answer = ask(api, "POST", CANDIDATES, body={"groups": groups, "same_subtree": ties})
    assert answer["complete"]
    (request,) = answer["allocation_requests"]
    assert len({request["mappings"][f"_S{number}"][0] for number in range(6)}) == 6


TWO_GPUS = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}}


def join(api: Api, *names: str) -> None:
    aggregate = new_uuid()
    for name in names:
        change(api, uuid_of(name), "aggregates", [aggregate])


@pytest.fixture
def pool(api: Api) -> Api:
    """Two hosts with a GPU each, and a pool with one behind a switch that the first host shares."""
    root = provider(api, "pool", None, {}, [])
    node = provider(api, "pool-numa", root, {}, ["HW_NUMA_ROOT"])
    lock = {"CUSTOM_PCIE_LOCK": {"total": 4}}
    ask(api, "PUT", "/resource_classes/CUSTOM_PCIE_LOCK")
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    switch = provider(api, "pool-pcie", node, lock, ["CUSTOM_HW_PCIE_SWITCH"])
    provider(api, "pool-gpu", switch, {"PGPU": {"total": 2}}, [SHARES])
    for name in ("host", "other"):
        provider(api, name, None, {"PGPU": {"total": 2}, "MEMORY_MB": {"total": 4}}, [])
    join(api, "host", "pool-gpu")
    return api


@pytest.mark.parametrize(
    "left_out", [lambda tree: {"avoid": {"trees": [tree]}}, lambda tree: {"without": [tree]}], ids=["avoided", "gone"]
)
def test_a_tree_that_is_left_out_shares_nothing(pool: Api, left_out: Callable[[str], dict[str, Any]]) -> None:
    assert planned(pool, {**TWO_GPUS, **left_out(uuid_of("pool"))}) == []


def test_what_is_taken_around_a_shared_device_is_not_charged_to_the_host(pool: Api) -> None:
    """The lock of the pool's switch is none of the host, which has no such class and would get 0 for it."""
    profile = {"sra": {"resources": {"DISK_GB": 1}, "mode": "upstream"}}
    answer = ask(pool, "POST", CANDIDATES, body={**TWO_GPUS, "profile": profile})
    (candidate,) = answer["allocation_requests"]
    assert {*candidate["allocations"]} == {uuid_of("host"), uuid_of("pool-gpu"), uuid_of("pool-pcie")}
    assert [score["sra"] for score in answer["scores"]] == [100]


def test_what_takes_of_a_pool_alone_comes_once(api: Api) -> None:
    """It is the same candidate for each tree that the pool shares with."""
    provider(api, "pool", None, {"DISK_GB": {"total": 100}}, [SHARES])
    for name in ("a", "b", "c"):
        provider(api, name, None, {"VCPU": {"total": 4}}, [])
    join(api, "pool", "a", "b", "c")
    assert planned(api, {"groups": {"": {"resources": {"DISK_GB": 1}}}}) == [{"": ["pool"]}]
    assert len(planned(api, {"groups": {"": {"resources": {"DISK_GB": 1, "VCPU": 1}}}, "limit": 2})) == 2

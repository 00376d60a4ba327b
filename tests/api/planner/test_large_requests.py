"""POST /planner/v1/candidates with many groups: an answer in few steps, or a note that it is incomplete."""

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, names_of, planned, register


def test_a_request_that_would_take_too_long_is_cut_off(api: Api) -> None:
    """Large amounts whose total exactly fills both nodes, but of which no subset exactly fills one."""
    amounts = [pow(7, number, 170_000_002) for number in range(30, 54)]
    register(api, numa_inventory={"VCPU": {"total": sum(amounts) // 2}})
    groups = {f"_{number}": {"resources": {"VCPU": amount}} for number, amount in enumerate(amounts)}
    answer = api.post(CANDIDATES, {"groups": groups})
    assert answer.status_code == 503
    assert "limit was reached" in answer.json["errors"][0]["detail"]


def test_many_isolated_groups_are_served_as_fast_as_one_that_counts(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 7, "nics": 0}] * 2])
    groups = {f"_{number}": {"resources": {"PGPU": 1}} for number in range(14)}
    (candidate,) = planned(api, {"groups": groups, "group_policy": "isolate"})
    assert candidate == {f"_{number}": [f"host-gpu{number}"] for number in range(14)}
    assert planned(api, {"groups": {**groups, "_14": {"resources": {"PGPU": 1}}}, "group_policy": "isolate"}) == []


def test_many_groups_that_may_share_a_provider_are_served_as_one(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 1, "nics": 1}]] * 2)
    vcpus = {uuid: names_of(api)[uuid] for uuid in names_of(api) if "numa" in names_of(api)[uuid]}
    groups = {f"_{number}": {"resources": {"VCPU": 2}} for number in range(24)}
    (candidate,) = planned(api, {"groups": groups})
    assert len(candidate) == 24
    assert {name for names in candidate.values() for name in names} <= set(vcpus.values())


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

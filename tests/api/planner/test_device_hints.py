"""POST /planner/v1/candidates in Koordinator's terms, and conditions on devices and their virtual functions."""

import pytest

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, EIGHT_SWITCHES, hold, only, planned, register, uuid_of

pytestmark = pytest.mark.any_database


def test_seed_004_gpus_and_nics_forced_on_the_same_switches(api: Api) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    body = {
        "requests": {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 1},
        "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"},
    }
    assert only(api, body) == {"_gpu": "gpu0 gpu1 gpu2 gpu3", "_rdma": "nic0 nic1 nic2 nic3"}


def test_seed_004_the_heterogeneous_machine_gives_one_nic(api: Api) -> None:
    """Two NUMA nodes with four switches each, a GPU on each switch, and one NIC on each NUMA node."""
    with_nic, without = {"gpus": 1, "nics": 1}, {"gpus": 1, "nics": 0}
    register(api, numa_nodes=[[with_nic, without, without, without]] * 2)
    body = {
        "requests": {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 1},
        "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"]},
    }
    assert only(api, body) == {"_gpu": "gpu0 gpu1 gpu2 gpu3", "_rdma": "nic0"}
    assert (
        planned(api, {**body, "device_joint_allocate": {**body["device_joint_allocate"], "requiredScope": "SamePCIe"}})
        == []
    )


def test_seed_004_exclusively_and_on_the_same_switches(api: Api) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    hold(api, "nic1-vf", SRIOV_NET_VF=1)
    body = {
        "requests": {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 1},
        "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"},
        "device_allocate_hint": {"rdma": {"vfSelector": {}, "exclusivePolicy": "PCIeLevel"}},
    }
    assert only(api, body) == {"_gpu": "gpu4 gpu5 gpu6 gpu7", "_rdma": "nic4-vf nic5-vf nic6-vf nic7-vf"}
    answer = ask(api, "POST", CANDIDATES, body=body)
    taken = answer["allocation_requests"][0]["allocations"]
    switches = [uuid_of(f"host-pcie1.{number}") for number in range(4)]
    assert [taken[switch] for switch in switches] == [{"resources": {"CUSTOM_PCIE_LOCK": 1000}}] * 4
    assert answer["scores"][0]["exclusive"] == dict.fromkeys(switches, "CUSTOM_PCIE_LOCK")


def test_seed_004_all_nics_of_the_machine(api: Api) -> None:
    register(api)
    body = {
        "requests": {"koordinator.sh/rdma": 100},
        "device_allocate_hint": {"rdma": {"allocateStrategy": "ApplyForAll"}},
    }
    assert only(api, body) == {"_rdma": "nic0 nic1 nic2 nic3"}
    hold(api, "nic2", CUSTOM_RDMA_SHARE=1)
    assert planned(api, body) == []


def test_seed_004_a_virtual_function_from_each_of_two_nics(api: Api) -> None:
    register(api)
    hint = {"rdma": {"vfSelector": {}, "allocateStrategy": "RequestsAsCount"}}
    body = {"requests": {"koordinator.sh/rdma": 2}, "device_allocate_hint": hint}
    assert only(api, body) == {"_rdma": "nic0-vf nic1-vf"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({"matchLabels": {"type": "fakeW"}}, "nic0 nic1 nic2 nic3", id="DV-17-fakeW"),
        pytest.param({"matchLabels": {"type": "fakeS"}}, "nic4", id="DV-17-fakeS"),
        pytest.param(
            {"matchExpressions": [{"key": "type", "operator": "Exists"}]}, "nic0 nic1 nic2 nic3 nic4", id="DV-17-exists"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "type", "operator": "In", "values": ["fakeS", "fakeX"]}]}, "nic4", id="in"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["fakeW"]}]}, "nic4", id="not-in"
        ),
        pytest.param({"matchLabels": {"type": "fakeX"}}, None, id="DV-17-unmatched"),
    ],
)
def test_dv_17_selectors_are_traits(api: Api, selector, expected) -> None:
    nic = {"gpus": 0, "nics": 1}
    register(api, numa_nodes=[[nic] * 5])
    for trait in ("TYPE", "TYPE_FAKEW", "TYPE_FAKES", "TYPE_FAKEX"):
        ask(api, "PUT", f"/traits/CUSTOM_NIC_LABEL_{trait}")
    for number in range(5):
        path = f"/resource_providers/{uuid_of(f'host-nic{number}')}/traits"
        traits = ["CUSTOM_NIC_LABEL_TYPE", f"CUSTOM_NIC_LABEL_TYPE_{'FAKES' if number == 4 else 'FAKEW'}"]
        generation = ask(api, "GET", path)["resource_provider_generation"]
        ask(api, "PUT", path, body={"resource_provider_generation": generation, "traits": traits})
    hint = {"rdma": {"selector": selector, "allocateStrategy": "ApplyForAll"}}
    body = {"requests": {"rdma": 10}, "device_allocate_hint": hint}
    assert planned(api, body) == ([] if expected is None else [{"_rdma": [f"host-{n}" for n in expected.split()]}])

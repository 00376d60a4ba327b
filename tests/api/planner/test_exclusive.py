"""Exclusive places and devices in the planner: what is held, what is checked, and what prevents a claim."""

import pytest

from tests.api.conftest import Api
from tests.claims import ask, new_uuid, proposed
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, hold, only, planned, provider, register, uuid_of


def test_a_switch_that_is_held_exclusively_is_not_shared(api: Api) -> None:
    """DV-35: Koordinator forgets it as soon as the pod is placed."""
    register(api)
    alone = {
        "groups": {"_NIC": {"resources": {"CUSTOM_RDMA_SHARE": 1}}},
        "exclusive": [{"groups": ["_NIC"], "level": "pcie"}],
    }
    answer = ask(api, "POST", CANDIDATES, body=alone)
    ask(api, "PUT", f"/allocations/{new_uuid()}", body=proposed(answer["allocation_requests"][0]))
    assert only(api, {"groups": {"_NIC": {"resources": {"CUSTOM_RDMA_SHARE": 1}}}}) == {"_NIC": "nic1"}
    assert only(api, alone) == {"_NIC": "nic1"}


def test_of_a_lock_that_comes_in_parts_a_whole_part_is_taken(api: Api) -> None:
    """A sharer of the switch takes the smallest amount that its lock allows; where no part is left, it is full."""
    register(api, numa_nodes=[[{"gpus": 3, "nics": 0}]])
    switch = uuid_of("host-pcie0.0")
    put_lock(api, switch, "CUSTOM_PCIE_LOCK", total=10, min_unit=3, step_size=2, max_unit=10)
    one = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
    assert [claimed(api, one)["allocations"][switch]["resources"] for _ in range(2)] == [{"CUSTOM_PCIE_LOCK": 4}] * 2
    assert planned(api, one) == []


@pytest.mark.parametrize("level", ["pcie", "device"])
@pytest.mark.parametrize("units", [{"max_unit": 9}, {"step_size": 3}], ids=["max_unit", "step_size"])
def test_a_lock_that_cannot_be_taken_at_once_is_held_by_nobody(api: Api, level: str, units: dict[str, int]) -> None:
    """The candidate was refused by PUT and by a claim, and headroom counted it."""
    register(api, numa_nodes=[[{"gpus": 1, "nics": 0}]])
    place, name = {"pcie": ("host-pcie0.0", "CUSTOM_PCIE_LOCK"), "device": ("host-gpu0", "CUSTOM_DEVICE_LOCK")}[level]
    put_lock(api, uuid_of(place), name, total=10, **units)
    shared = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
    alone = {**shared, "exclusive": [{"groups": ["_GPU"], "level": level}]}
    assert planned(api, alone) == []
    assert (
        ask(api, "POST", "/planner/v1/headroom", body={"requests": {"alone": alone}})["headroom"]["alone"]["fits"] == 0
    )
    assert api.post(CLAIMS, {**alone, "consumer": consumer()}).status_code == 409
    assert len(planned(api, shared)) == 1


def put_lock(api: Api, provider: str, name: str, **inventory: int) -> None:
    """Replace the inventory of a place's or a device's lock, and keep its other inventory."""
    path = f"/resource_providers/{provider}/inventories/{name}"
    generation = ask(api, "GET", f"/resource_providers/{provider}")["generation"]
    ask(api, "PUT", path, body={"resource_provider_generation": generation, **inventory})


def claimed(api: Api, body: dict) -> dict:
    return ask(api, "POST", CLAIMS, body={**body, "consumer": consumer()})


def test_a_place_without_a_lock_is_named_as_such(api: Api) -> None:
    register(api)
    switch = uuid_of("host-pcie0.0")
    ask(api, "DELETE", f"/resource_providers/{switch}/inventories/CUSTOM_PCIE_LOCK")
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}, "exclusive": [{"groups": ["_GPU"], "level": "pcie"}]}
    answer = ask(api, "POST", CANDIDATES, body=body)
    assert answer["scores"][0]["exclusive"] == {switch: None}


def test_an_exclusive_device_has_nobody_on_its_functions_either(api: Api) -> None:
    register(api)
    hold(api, "nic0-vf", SRIOV_NET_VF=1)
    body = {
        "groups": {"_NIC": {"resources": {"CUSTOM_RDMA_SHARE": 1}}},
        "exclusive": [{"groups": ["_NIC"], "level": "device"}],
    }
    assert only(api, body) == {"_NIC": "nic1"}


def test_a_numa_node_is_not_had_alone_while_something_below_it_is_in_use(api: Api) -> None:
    """It is both a place and, for its CPUs, a device."""
    register(api)
    hold(api, "gpu0", PGPU=1)
    body = {"groups": {"_A": {"resources": {"VCPU": 1}}}, "exclusive": [{"groups": ["_A"], "level": "device"}]}
    assert only(api, body) == {"_A": "numa1"}


def test_a_lock_counts_only_on_a_place_of_its_level(api: Api) -> None:
    """A riser is no switch, so a claim on its inventory of the switches' lock holds nothing below it."""
    register(api, numa_nodes=[[{"gpus": 0, "nics": 0}]])
    riser = provider(api, "host-riser", uuid_of("host-numa0"), {"CUSTOM_PCIE_LOCK": {"total": 10}}, [])
    provider(api, "host-gpu0", riser, {"PGPU": {"total": 1}}, [])
    hold(api, "riser", CUSTOM_PCIE_LOCK=10)
    assert only(api, {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}) == {"_GPU": "gpu0"}

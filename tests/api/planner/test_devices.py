"""Devices in the planner: conditions on them and on their virtual functions, and who has them alone."""

import pytest

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, placed, planned, provider, register, uuid_of

pytestmark = pytest.mark.any_database


FUNCTION = {"resources": {"SRIOV_NET_VF": 1}, "vf_selector": []}
SWITCH = "CUSTOM_HW_PCIE_SWITCH"
ONE_SWITCH = [[{"gpus": 1, "nics": 1}]]


@pytest.fixture
def host(api: Api) -> Api:
    """A host with a NIC that has two providers of virtual functions, one with room for one, one with room for two."""
    register(api, numa_nodes=ONE_SWITCH, virtual_functions=1)
    provider(api, "host-nic0-more", uuid_of("host-nic0"), {"SRIOV_NET_VF": {"total": 2}}, [])
    return api


def functions(api: Api, body: dict) -> dict[str, str] | None:
    """Return the providers of the best candidate without the NIC's name, or None if there is none."""
    found = planned(api, body)
    return (
        {suffix: " ".join(n.removeprefix("host-nic0-") for n in names) for suffix, names in found[0].items()}
        if found
        else None
    )


def test_two_groups_share_a_nic_that_they_have_for_themselves(host: Api) -> None:
    """Nobody else gets any function of the NIC, not from its second provider either."""
    body = {
        "groups": {"_A": {**FUNCTION, "resources": {"SRIOV_NET_VF": 2}}, "_B": FUNCTION},
        "group_policy": "none",
        "exclusive": [{"groups": ["_A", "_B"], "level": "device"}],
    }
    assert functions(host, body) == {"_A": "more", "_B": "vf"}
    claimed = host.post(CLAIMS, {**body, "consumer": consumer()})
    assert claimed.status_code == 201, claimed.text
    assert {uuid_of("host-nic0-more"), uuid_of("host-nic0-vf")} < set(claimed.json["allocations"])
    assert functions(host, {"groups": {"_A": FUNCTION}, "exclusive": [{"groups": ["_A"], "level": "device"}]}) is None


def test_of_a_card_with_functions_in_different_places_those_of_one_place_serve(api: Api) -> None:
    """Each of two cards has functions behind two switches."""
    register(api, numa_nodes=[[{"gpus": 1, "nics": 0}]])
    for card in "ab":
        provider(api, f"host-{card}", uuid_of("host"), {}, ["HW_NIC_SRIOV"])
        for place in "01":
            place_of_card = f"host-{card}{place}"
            provider(api, place_of_card, uuid_of(f"host-{card}"), {"SRIOV_NET_VF": {"total": 4}}, [SWITCH])
    answer = ask(api, "POST", CANDIDATES, body={"groups": {"_VF": {**FUNCTION, "count": 2}}})
    (pair,) = [candidate["mappings"]["_VF"] for candidate in answer["allocation_requests"]]
    assert (pair, answer["complete"]) == ([uuid_of("host-a0"), uuid_of("host-b0")], False)
    assert planned(api, {"groups": {"_VF": {**FUNCTION, "count": 3}}}) == []


def test_of_a_lock_that_comes_in_parts_a_whole_part_is_taken(api: Api) -> None:
    """A sharer of the switch takes the smallest amount that its lock allows; where no part is left, it is full."""
    register(api, numa_nodes=[[{"gpus": 3, "nics": 0}]])
    switch = uuid_of("host-pcie0.0")
    put_lock(api, switch, "CUSTOM_PCIE_LOCK", total=10, min_unit=3, step_size=2, max_unit=10)
    one = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
    assert [placed(api, one)["allocations"][switch]["resources"] for _ in range(2)] == [{"CUSTOM_PCIE_LOCK": 4}] * 2
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


def test_a_place_without_a_lock_is_named_as_such(api: Api) -> None:
    register(api)
    switch = uuid_of("host-pcie0.0")
    ask(api, "DELETE", f"/resource_providers/{switch}/inventories/CUSTOM_PCIE_LOCK")
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}, "exclusive": [{"groups": ["_GPU"], "level": "pcie"}]}
    answer = ask(api, "POST", CANDIDATES, body=body)
    assert answer["scores"][0]["exclusive"] == {switch: None}
